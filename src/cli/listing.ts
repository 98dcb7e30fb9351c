import type { Terminal } from './client/terminal.js';
import { formatTable } from './table.js';

/** Columns of a table by their headings: what each shows of a row. */
export type Columns<Row> = Readonly<Record<string, (row: Row) => string>>;

/** Writes rows as a table, or as the JSON array of them for scripts. */
export function printRows<Row>(
  rows: readonly Row[],
  columns: Columns<Row>,
  { terminal, json }: { terminal: Terminal; json: boolean },
): void {
  const cells = rows.map((row) => Object.values(columns).map((show) => show(row)));
  terminal.stdout.write(
    `${json ? JSON.stringify(rows, null, 2) : formatTable(Object.keys(columns), cells)}\n`,
  );
}

/** Writes one row as such a table, or as a JSON object. */
export function printRow<Row>(
  row: Row,
  columns: Columns<Row>,
  { terminal, json }: { terminal: Terminal; json: boolean },
): void {
  if (json) terminal.stdout.write(`${JSON.stringify(row, null, 2)}\n`);
  else printRows([row], columns, { terminal, json });
}

/** A moment, to the minute. */
export function minute(date: string | null): string {
  return date === null ? '' : date.slice(0, 16).replace('T', ' ');
}
