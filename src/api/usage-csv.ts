import type { UsageGrouping, UsageSum } from '../contract/usage.js';

const sums = [
  'requests',
  'failed_requests',
  'prompt_tokens',
  'completion_tokens',
  'cached_tokens',
  'total_tokens',
] as const;

/** A report as a table (RFC 4180), with a line of names first. */
export function usageCsv(rows: readonly UsageSum[], groupBy: ReadonlySet<UsageGrouping>): string {
  const columns: (keyof UsageSum)[] = [
    ...(groupBy.has('day') ? (['day'] as const) : []),
    ...(groupBy.has('model') ? (['model'] as const) : []),
    ...(groupBy.has('key') ? (['key_id', 'key_name'] as const) : []),
    ...sums,
  ];
  const lines = [columns.join(','), ...rows.map((row) => columns.map((name) => cell(row[name])).join(','))];
  return `${lines.join('\r\n')}\r\n`;
}

function cell(value: string | number | null | undefined): string {
  if (typeof value === 'number') return String(value);
  const text = value ?? '';
  // A spreadsheet would run what begins like this.
  const harmless = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
