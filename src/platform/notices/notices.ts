import { z } from 'zod';
import type { NewNotice } from '../../contract/admin.js';
import { type Notice, type NoticeList, noticeKinds, type Page } from '../../contract/notices.js';
import { requireAccount } from '../accounts.js';
import { type ChangeContext, makeChange } from '../change.js';
import type { Database } from '../database/database.js';
import type { Notice as Row } from '../database/generated/client.js';

/** What an account is shown. */
export interface NoticeReader {
  /** Notices for everyone and for this account, the newest first. */
  list(accountId: string, page: Page): Promise<NoticeList>;
}

/** The notices in Postgres. */
export class PrismaNotices implements NoticeReader {
  readonly #client: Pick<Database['client'], 'notice'>;

  constructor(client: Pick<Database['client'], 'notice'>) {
    this.#client = client;
  }

  async list(accountId: string, page: Page): Promise<NoticeList> {
    return this.#list({ OR: [{ accountId: null }, { accountId }] }, page);
  }

  /** Whomever they are for: for operators. */
  async listAll(page: Page): Promise<NoticeList> {
    return this.#list({}, page);
  }

  async #list(whose: object, { limit, before }: Page): Promise<NoticeList> {
    const rows = await this.#client.notice.findMany({
      where: { AND: [whose, before === undefined ? {} : { id: { lt: before } }] },
      orderBy: { id: 'desc' },
      take: limit + 1,
    });
    return { object: 'list', data: rows.slice(0, limit).map(toNotice), has_more: rows.length > limit };
  }
}

/** @throws ServiceError routeNotFound when it is for an account that does not exist. */
export async function createNotice(
  { account, ...words }: NewNotice,
  context: ChangeContext,
): Promise<Notice> {
  return makeChange(context, async (change) => {
    const accountId = account === undefined ? undefined : (await requireAccount(change.client, account)).id;
    const id = await change.notify({ kind: 'general', ...words, accountId });
    const notice = toNotice(await change.client.notice.findUniqueOrThrow({ where: { id } }));
    const whom = accountId === undefined ? {} : { account: accountId };
    await change.audit({ action: 'notice.create', target: id, after: { ...notice, ...whom } });
    return notice;
  });
}

export function toNotice({ id, createdAt, kind, model, accountId, title, text }: Row): Notice {
  return {
    id,
    object: 'notice',
    created: Math.floor(createdAt.getTime() / 1000),
    kind: z.enum(noticeKinds).parse(kind),
    model,
    audience: accountId === null ? 'everyone' : 'account',
    title,
    text,
  };
}
