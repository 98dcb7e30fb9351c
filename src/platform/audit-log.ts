import type { AuditEntry } from '../contract/admin.js';
import type { Page } from '../contract/notices.js';
import type { Database } from './database/database.js';

/** Who changed what, the newest first. */
export async function readAuditLog(
  { client }: Pick<Database, 'client'>,
  { limit, before, target }: Page & { target?: string },
): Promise<AuditEntry[]> {
  const entries = await client.auditEntry.findMany({
    where: { target, id: before === undefined ? undefined : { lt: before } },
    orderBy: { id: 'desc' },
    take: limit,
  });
  return entries.map(({ createdAt, ...entry }) => ({ at: createdAt.toISOString(), ...entry }));
}
