import { beforeEach, describe, expect, it } from 'vitest';
import { catalogueChannel } from '../../../src/contract/names.js';
import { changeModel, listModelStatuses } from '../../../src/platform/model-registry/change-model.js';
import { PrismaNotices } from '../../../src/platform/notices/notices.js';
import { deferred } from '../../support/deferred.js';
import { catalogue, useAdministration } from '../support/administration.js';

const administration = useAdministration();
const stranger = '0190a000-0000-7000-8000-00000000ffff';
const page = { limit: 100 };

beforeEach(async () => {
  const { client } = administration.database;
  await client.modelState.deleteMany();
  await client.notice.deleteMany();
  await client.auditEntry.deleteMany();
  await client.account.deleteMany();
});

const noticesOf = async (accountId: string) =>
  (await new PrismaNotices(administration.database.client).list(accountId, page)).data;
const change = (wish: Parameters<typeof changeModel>[1], model = 'owner/chat') =>
  changeModel(model, wish, administration.context);

describe('a change of a model', () => {
  it('is stored, told to every process, noticed and written down', async () => {
    const heard = deferred<string>();
    const subscription = await administration.backplane.channel.subscribe(catalogueChannel, heard.resolve);

    await change({ state: 'offline' });

    await heard.promise;
    await subscription.close();
    const [status] = await listModelStatuses(administration.database, catalogue);
    expect(status).toMatchObject({ model: 'owner/chat', state: 'offline', access: 'open' });
    expect(await noticesOf(stranger)).toMatchObject([
      { kind: 'model.offline', model: 'owner/chat', audience: 'everyone', title: 'owner/chat is offline' },
    ]);
    expect(await administration.lastAudit()).toMatchObject({
      actor: 'cli:test',
      action: 'model.update',
      target: 'owner/chat',
      before: { state: 'online' },
      after: { state: 'offline' },
    });
  });

  it('that changes nothing leaves no trace', async () => {
    await change({ state: 'online', access: 'open' });
    expect(await noticesOf(stranger)).toEqual([]);
    expect(await administration.lastAudit()).toBeNull();
  });

  it('of a list is told to the accounts that it concerns and to no other', async () => {
    const [first, second] = [await administration.account('first'), await administration.account('second')];

    await change({ access: 'listed', accounts: ['first', second.id] });
    await change({ accounts: ['second'] });

    expect((await noticesOf(first.id)).map(({ title }) => title)).toEqual([
      'owner/chat is no longer open to your account',
      'owner/chat is now open to your account',
      'Access to owner/chat has changed',
    ]);
    expect((await noticesOf(second.id)).map(({ title }) => title)).toEqual([
      'owner/chat is now open to your account',
      'Access to owner/chat has changed',
    ]);
    expect((await noticesOf(stranger)).map(({ title }) => title)).toEqual([
      'Access to owner/chat has changed',
    ]);
  });

  it('to deprecated keeps its date while the sunset moves, and going online again forgets both', async () => {
    const first = await change({ state: 'deprecated', sunset: new Date('2035-01-01T00:00:00Z') });
    const moved = await change({ sunset: new Date('2036-01-01T00:00:00Z') });
    expect(moved).toMatchObject({ deprecated: first.deprecated, sunset: '2036-01-01T00:00:00.000Z' });
    expect(await change({ state: 'online' })).toMatchObject({ deprecated: null, sunset: null });
    expect((await noticesOf(stranger)).map(({ text }) => text)).toEqual([
      'The model owner/chat takes requests.',
      'The model owner/chat takes requests until 2036-01-01T00:00:00Z and none after that.',
      'The model owner/chat takes requests until 2035-01-01T00:00:00Z and none after that.',
    ]);
  });

  it.each([
    [{ state: 'deprecated' } as const, 'sunset: is required'],
    [{ sunset: new Date('2035-01-01') }, 'sunset: is for a deprecated model'],
    [{ state: 'deprecated', sunset: new Date('2020-01-01') } as const, 'sunset: must be in the future'],
    [{ accounts: ["nobody'; DROP TABLE accounts; --"] }, 'There is no account "nobody\'; DROP TABLE'],
    [{ accounts: ['nul\0'] }, 'There is no account'],
  ])('such as %j is refused and undone', async (wish, message) => {
    await expect(change(wish)).rejects.toThrow(message);
    expect(await administration.lastAudit()).toBeNull();
  });

  it('of a model that the catalogue does not have is refused', async () => {
    await expect(change({ state: 'offline' }, 'another')).rejects.toThrow('Model does not exist.');
  });

  it('waits for one that is under way, so that each is written down with what it found', async () => {
    await Promise.all([change({ state: 'offline' }), change({ access: 'verified' })]);
    const entries = await administration.database.client.auditEntry.findMany({ orderBy: { id: 'asc' } });
    expect(entries[1]!.before).toEqual(entries[0]!.after);
    expect(entries[1]!.after).toMatchObject({ state: 'offline', access: 'verified' });
  });

  it('is made although nobody can be told', async () => {
    const backplane = {
      channel: {
        ...administration.backplane.channel,
        publish: async () => {
          throw new Error('the channel is away');
        },
      },
      tasks: administration.backplane.tasks.bind(administration.backplane),
    };
    const status = await changeModel(
      'rerank',
      { state: 'offline' },
      { ...administration.context, backplane },
    );
    expect(status.state).toBe('offline');
  });
});
