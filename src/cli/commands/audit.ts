import type { AuditEntry } from '../../contract/admin.js';
import { readAuditLog } from '../../platform/audit-log.js';
import type { Desk } from '../desk.js';
import { type Columns, minute, printRows } from '../listing.js';

const columns: Columns<AuditEntry> = {
  at: ({ at }) => minute(at),
  who: ({ actor }) => actor,
  what: ({ action }) => action,
  target: ({ target }) => target,
  change: ({ before, after }) => difference(before, after),
};

/** `headrace audit`. */
export async function runAudit(options: { limit: number; target?: string }, desk: Desk): Promise<void> {
  printRows(await readAuditLog(desk.database, options), columns, desk);
}

/** The fields that are not as they were. */
function difference(before: unknown, after: unknown): string {
  const [was, is] = [before ?? {}, after ?? {}] as Record<string, unknown>[];
  const names = Object.keys({ ...was, ...is });
  const changed = names.filter((name) => JSON.stringify(was![name]) !== JSON.stringify(is![name]));
  return changed.map((name) => `${name}=${JSON.stringify(is![name])}`).join(' ');
}
