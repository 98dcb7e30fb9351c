import type { ModelChange, ModelStatus } from '../../contract/admin.js';
import { ServiceError } from '../../contract/errors.js';
import { catalogueChannel } from '../../contract/names.js';
import type { Notice } from '../../contract/notices.js';
import type { Catalogue, CatalogueModel } from '../../models/catalogue.js';
import { requireAccount } from '../accounts.js';
import { type Change, type ChangeContext, makeChange } from '../change.js';
import type { Database } from '../database/database.js';
import type { Prisma } from '../database/generated/client.js';
import { initialState, type ModelState } from './model-state.js';
import { PrismaModelStates } from './model-states.js';

/** Every model of the catalogue and what was decided about it. */
export async function listModelStatuses(
  { client }: Pick<Database, 'client'>,
  { models }: Catalogue,
): Promise<ModelStatus[]> {
  return Promise.all(models.map((entry) => readStatus(client, entry)));
}

/**
 * Puts a model online or offline, deprecates it, or decides who may use it; tells its users.
 * @throws ServiceError when there is no such model or account, or a sunset is missing, past or of no use.
 */
export async function changeModel(
  id: string,
  wish: ModelChange,
  context: ChangeContext & { catalogue: Catalogue; now?: Date },
): Promise<ModelStatus> {
  const { catalogue, now = new Date() } = context;
  const entry = catalogue.models.find((model) => model.id === id);
  if (entry === undefined) throw new ServiceError('modelNotFound');
  return makeChange(context, async (change) => {
    const { client } = change;
    const states = await new PrismaModelStates(client).load();
    const current = states.get(id) ?? initialState;
    const next = await decide(current, wish, { client, now });
    if (same(current, next)) return readStatus(client, entry);

    const before = await readStatus(client, entry);
    await store(client, id, next);
    const after = await readStatus(client, entry);
    await change.audit({ action: 'model.update', target: id, before, after });
    await announce(change, { id, current, next });
    change.tell(catalogueChannel);
    return after;
  });
}

async function decide(
  current: ModelState,
  wish: ModelChange,
  { client, now }: { client: Prisma.TransactionClient; now: Date },
): Promise<ModelState> {
  const state = wish.state ?? current.state;
  const sunsetAt = wish.sunset ?? current.sunsetAt;
  if (state === 'deprecated' && sunsetAt === null) {
    throw new ServiceError('invalidParameter', 'sunset: is required for a deprecated model');
  }
  if (wish.sunset !== undefined && state !== 'deprecated') {
    throw new ServiceError('invalidParameter', 'sunset: is for a deprecated model');
  }
  if (wish.sunset !== undefined && wish.sunset <= now) {
    throw new ServiceError('invalidParameter', 'sunset: must be in the future');
  }
  const accounts =
    wish.accounts === undefined
      ? current.accounts
      : new Set(
          await Promise.all(wish.accounts.map(async (name) => (await requireAccount(client, name)).id)),
        );
  return {
    state,
    deprecatedAt: state === 'deprecated' ? (current.deprecatedAt ?? now) : null,
    sunsetAt: state === 'deprecated' ? sunsetAt : null,
    access: wish.access ?? current.access,
    accounts,
  };
}

async function store(client: Prisma.TransactionClient, model: string, next: ModelState): Promise<void> {
  const { accounts, ...row } = next;
  await client.modelState.upsert({ where: { model }, create: { model, ...row }, update: row });
  await client.modelGrant.deleteMany({ where: { model } });
  await client.modelGrant.createMany({ data: [...accounts].map((accountId) => ({ model, accountId })) });
}

/** One notice for everyone for each thing that changed for everyone, and one for each account for which it did. */
async function announce(
  change: Change,
  { id, current, next }: { id: string; current: ModelState; next: ModelState },
): Promise<void> {
  if (current.state !== next.state || current.sunsetAt?.getTime() !== next.sunsetAt?.getTime()) {
    await change.notify({ model: id, ...stateNotice(id, next) });
  }
  if (current.access !== next.access) await change.notify({ model: id, ...accessNotice(id, next) });
  if (next.access !== 'listed') return;
  const told = (accountId: string, verb: string) =>
    change.notify({
      kind: 'model.access',
      model: id,
      accountId,
      title: `${id} is ${verb} open to your account`,
      text: `The model ${id} is ${verb} open to your account.`,
    });
  for (const accountId of next.accounts) {
    if (!current.accounts.has(accountId)) await told(accountId, 'now');
  }
  for (const accountId of current.accounts) {
    if (!next.accounts.has(accountId)) await told(accountId, 'no longer');
  }
}

interface Wording {
  readonly kind: Notice['kind'];
  readonly title: string;
  readonly text: string;
}

function stateNotice(id: string, { state, sunsetAt }: ModelState): Wording {
  switch (state) {
    case 'online':
      return { kind: 'model.online', title: `${id} is online`, text: `The model ${id} takes requests.` };
    case 'offline':
      return {
        kind: 'model.offline',
        title: `${id} is offline`,
        text: `The model ${id} takes no more requests. Those that it has taken run to their end.`,
      };
    case 'deprecated': {
      const end = sunsetAt?.toISOString().replace(/\.000Z$/, 'Z');
      return {
        kind: 'model.deprecated',
        title: `${id} is deprecated`,
        text: `The model ${id} takes requests until ${end} and none after that.`,
      };
    }
    default:
      return state satisfies never;
  }
}

function accessNotice(id: string, { access }: ModelState): Wording {
  const whom = {
    open: 'every account',
    listed: 'the accounts on its list',
    verified: 'accounts that are verified by real name',
  }[access];
  return {
    kind: 'model.access',
    title: `Access to ${id} has changed`,
    text: `The model ${id} is open to ${whom}.`,
  };
}

async function readStatus(
  client: Pick<Prisma.TransactionClient, 'modelState'>,
  { id, task }: CatalogueModel,
): Promise<ModelStatus> {
  const row = await client.modelState.findUnique({
    where: { model: id },
    include: { grants: { include: { account: true } } },
  });
  return {
    model: id,
    task,
    state: (row?.state ?? initialState.state) as ModelStatus['state'],
    deprecated: row?.deprecatedAt?.toISOString() ?? null,
    sunset: row?.sunsetAt?.toISOString() ?? null,
    access: (row?.access ?? initialState.access) as ModelStatus['access'],
    accounts: (row?.grants ?? [])
      .map(({ account }) => ({ id: account.id, name: account.name }))
      .sort((a, b) => a.name.localeCompare(b.name)),
  };
}

function same(a: ModelState, b: ModelState): boolean {
  return (
    a.state === b.state &&
    a.access === b.access &&
    a.sunsetAt?.getTime() === b.sunsetAt?.getTime() &&
    a.accounts.size === b.accounts.size &&
    [...a.accounts].every((account) => b.accounts.has(account))
  );
}
