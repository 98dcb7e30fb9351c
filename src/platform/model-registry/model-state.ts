import type { ErrorKind } from '../../contract/errors.js';

/** What an operator decided about a model. */
export interface ModelState {
  readonly state: 'online' | 'offline' | 'deprecated';
  /** Both set while `deprecated`. */
  readonly deprecatedAt: Date | null;
  readonly sunsetAt: Date | null;
  readonly access: 'open' | 'listed' | 'verified';
  /** Ids of the accounts on the model's list. */
  readonly accounts: ReadonlySet<string>;
}

/** Of a model about which nobody decided anything. */
export const initialState: ModelState = {
  state: 'online',
  deprecatedAt: null,
  sunsetAt: null,
  access: 'open',
  accounts: new Set(),
};

/** Whether requests for the model are taken: a deprecated one is served until its sunset. */
export function isServed({ state, sunsetAt }: ModelState, now: Date): boolean {
  switch (state) {
    case 'online':
      return true;
    case 'offline':
      return false;
    case 'deprecated':
      return sunsetAt === null || now < sunsetAt;
    default:
      return state satisfies never;
  }
}

/** Why this account may not use the model now; undefined when it may. */
export function refusalOf(
  model: ModelState,
  caller: { readonly accountId: string; readonly verified: boolean },
  now: Date,
): ErrorKind | undefined {
  if (!isServed(model, now)) return 'modelNotFound';
  switch (model.access) {
    case 'open':
      return undefined;
    case 'listed':
      return model.accounts.has(caller.accountId) ? undefined : 'modelNotOpen';
    case 'verified':
      return caller.verified ? undefined : 'verificationRequired';
    default:
      return model.access satisfies never;
  }
}
