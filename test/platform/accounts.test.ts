import { describe, expect, it } from 'vitest';
import { createAccount, listAccounts, requireAccount, updateAccount } from '../../src/platform/accounts.js';
import { useAdministration } from './support/administration.js';

const administration = useAdministration();
const create = (name: string) =>
  createAccount({ name, disabled: false, verified: false }, administration.context);

describe('accounts', () => {
  it('are found by id and by name', async () => {
    const account = await create('found');
    const { client } = administration.database;
    expect(await requireAccount(client, 'found')).toEqual(account);
    expect(await requireAccount(client, account.id)).toEqual(account);
  });

  it('are changed in what is named and in nothing else, and the log says from what to what', async () => {
    const before = await create('changed');
    const after = await updateAccount('changed', { disabled: true }, administration.context);
    expect(after).toEqual({ ...before, disabled: true });
    expect(await administration.lastAudit()).toMatchObject({
      actor: 'cli:test',
      action: 'account.update',
      target: before.id,
      before,
      after,
    });
  });

  it('leave no entry in the log when nothing is changed', async () => {
    await create('same');
    const entry = await administration.lastAudit();
    await updateAccount('same', { verified: false }, administration.context);
    expect(await administration.lastAudit()).toEqual(entry);
  });

  it('have names of their own, which are no other account’s id either', async () => {
    const { id } = await create('taken');
    await create('another');
    await expect(create('taken')).rejects.toThrow('name: there is an account "taken" already');
    await expect(create(id)).rejects.toThrow('already');
    await expect(updateAccount('another', { name: 'taken' }, administration.context)).rejects.toThrow(
      'already',
    );
  });

  it.each(["Robert'); DROP TABLE accounts;--", '%s%n', '<b>&amp;</b>', '" OR 1=1'])(
    'take %j for a name and nothing more',
    async (name) => {
      const { id } = await create(name);
      expect((await listAccounts(administration.database)).find((account) => account.id === id)?.name).toBe(
        name,
      );
      expect((await updateAccount(name, { verified: true }, administration.context)).id).toBe(id);
    },
  );

  it('that do not exist are said not to', async () => {
    for (const name of ['nobody', 'nul\0', '0190a000-0000-7000-8000-00000000ffff']) {
      await expect(updateAccount(name, {}, administration.context)).rejects.toThrow('There is no account');
    }
  });
});
