import { type Account, accountChangeSchema, newAccountSchema } from '../../contract/admin.js';
import { createAccount, listAccounts, requireAccount, updateAccount } from '../../platform/accounts.js';
import type { Desk } from '../desk.js';
import { type Columns, minute, printRow, printRows } from '../listing.js';
import { parseInput } from '../parse-input.js';

const columns: Columns<Account> = {
  id: ({ id }) => id,
  name: ({ name }) => name,
  state: ({ disabled }) => (disabled ? 'disabled' : 'active'),
  verified: ({ verified }) => (verified ? 'yes' : 'no'),
  created: ({ created }) => minute(created),
};

/** `headrace accounts list`. */
export async function runListAccounts(desk: Desk): Promise<void> {
  printRows(await listAccounts({ client: desk.database.client }), columns, desk);
}

/** `headrace accounts show`. */
export async function runShowAccount(idOrName: string, desk: Desk): Promise<void> {
  printRow(await requireAccount(desk.database.client, idOrName), columns, desk);
}

/** `headrace accounts create`. */
export async function runCreateAccount(
  account: { name: string; verified: boolean },
  desk: Desk,
): Promise<void> {
  printRow(await createAccount(parseInput(newAccountSchema, account), desk), columns, desk);
}

/** `headrace accounts set`. */
export async function runSetAccount(
  idOrName: string,
  wish: { name?: string; disabled?: boolean; verified?: boolean },
  desk: Desk,
): Promise<void> {
  printRow(await updateAccount(idOrName, parseInput(accountChangeSchema, wish), desk), columns, desk);
}
