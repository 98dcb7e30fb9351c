import { z } from 'zod';
import { modelAccesses, modelStates } from '../../contract/admin.js';
import type { Database } from '../database/database.js';
import type { ModelState } from './model-state.js';

/** Where the states of models are kept. */
export interface ModelStateStore {
  /** By model; those of which nothing is kept are absent. */
  load(): Promise<ReadonlyMap<string, ModelState>>;
}

const rowSchema = z.object({
  state: z.enum(modelStates),
  access: z.enum(modelAccesses),
  deprecatedAt: z.date().nullable(),
  sunsetAt: z.date().nullable(),
});

/** The states in Postgres. */
export class PrismaModelStates implements ModelStateStore {
  readonly #client: Pick<Database['client'], 'modelState'>;

  constructor(client: Pick<Database['client'], 'modelState'>) {
    this.#client = client;
  }

  async load(): Promise<ReadonlyMap<string, ModelState>> {
    const rows = await this.#client.modelState.findMany({ include: { grants: true } });
    return new Map(
      rows.map(({ model, grants, ...row }) => [
        model,
        { ...rowSchema.parse(row), accounts: new Set(grants.map(({ accountId }) => accountId)) },
      ]),
    );
  }
}
