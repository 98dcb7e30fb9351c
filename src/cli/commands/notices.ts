import { newNoticeSchema } from '../../contract/admin.js';
import type { Notice } from '../../contract/notices.js';
import { createNotice, PrismaNotices } from '../../platform/notices/notices.js';
import type { Desk } from '../desk.js';
import { type Columns, minute, printRow, printRows } from '../listing.js';
import { parseInput } from '../parse-input.js';

const columns: Columns<Notice> = {
  id: ({ id }) => id,
  created: ({ created }) => minute(new Date(created * 1000).toISOString()),
  kind: ({ kind }) => kind,
  for: ({ audience }) => audience,
  title: ({ title }) => title,
};

/** `headrace notices list`. */
export async function runListNotices({ limit }: { limit: number }, desk: Desk): Promise<void> {
  const { data } = await new PrismaNotices(desk.database.client).listAll({ limit });
  printRows(data, columns, desk);
}

/** `headrace notices create`. */
export async function runCreateNotice(
  notice: { title: string; text: string; account?: string; model?: string },
  desk: Desk,
): Promise<void> {
  printRow(await createNotice(parseInput(newNoticeSchema, notice), desk), columns, desk);
}
