import { beforeEach, describe, expect, it } from 'vitest';
import { createNotice, PrismaNotices } from '../../../src/platform/notices/notices.js';
import { useAdministration } from '../support/administration.js';

const administration = useAdministration();
let notices: PrismaNotices;

beforeEach(async () => {
  notices = new PrismaNotices(administration.database.client);
  await administration.database.client.account.deleteMany();
  await administration.database.client.notice.deleteMany();
});

const create = (title: string, account?: string) =>
  createNotice({ title, text: 'text', account }, administration.context);

describe('notices', () => {
  it('for one account are shown to it and to operators, and to no other account', async () => {
    const [mine, theirs] = [await administration.account('mine'), await administration.account('theirs')];
    await create('for all');
    await create('for me', 'mine');

    const titles = async (id: string) =>
      (await notices.list(id, { limit: 10 })).data.map(({ title }) => title);

    expect(await titles(mine.id)).toEqual(['for me', 'for all']);
    expect(await titles(theirs.id)).toEqual(['for all']);
    expect((await notices.listAll({ limit: 10 })).data).toHaveLength(2);
  });

  it('come in pages, each beginning where the one before it ended', async () => {
    const reader = await administration.account('reader');
    for (const title of ['1', '2', '3', '4', '5']) await create(title);

    const first = await notices.list(reader.id, { limit: 2 });
    const second = await notices.list(reader.id, { limit: 2, before: first.data.at(-1)!.id });
    const third = await notices.list(reader.id, { limit: 2, before: second.data.at(-1)!.id });

    const titles = [first, second, third].map(({ data }) => data.map(({ title }) => title));
    expect(titles).toEqual([['5', '4'], ['3', '2'], ['1']]);
    expect([first, second, third].map(({ has_more }) => has_more)).toEqual([true, true, false]);
  });

  it('are written down, with whom they were for', async () => {
    const { id } = await administration.account('reader');
    const notice = await create('for the reader', 'reader');
    expect(await administration.lastAudit()).toMatchObject({
      action: 'notice.create',
      target: notice.id,
      after: { title: 'for the reader', account: id },
    });
  });
});
