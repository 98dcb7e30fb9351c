import type { FastifyInstance } from 'fastify';
import { ServiceError } from '../../contract/errors.js';
import type { Backplane } from '../../platform/backplane/backplane.js';
import type { LiveCatalogue } from '../../platform/model-registry/live-catalogue.js';
import type { PresenceBoard } from '../../platform/presence.js';
import type { ApiDatabase } from '../api-database.js';

/** Whoever asks gives up soon after. */
const checkTimeoutMs = 2_000;

/** `GET /livez`: the process runs. `GET /readyz`: a request would be answered. */
export function addHealthRoutes(
  app: FastifyInstance,
  options: {
    database: Pick<ApiDatabase, 'check'>;
    backplane: Pick<Backplane, 'check'>;
    presence: Pick<PresenceBoard, 'workersOf'>;
    models: Pick<LiveCatalogue, 'served'>;
  },
): void {
  const { database, backplane, presence, models } = options;

  app.get('/livez', async () => ({ status: 'alive' }));

  app.get('/readyz', async (request) => {
    const signal = AbortSignal.timeout(checkTimeoutMs);
    const check = async (name: string, part: { check(signal: AbortSignal): Promise<void> }) => {
      try {
        await part.check(signal);
        return [];
      } catch (error) {
        // The reason names hosts: it is for the log, and not for whoever can reach this port.
        request.log.warn({ err: error }, `${name} does not answer`);
        return [`the ${name} does not answer`];
      }
    };
    const away = await Promise.all([check('database', database), check('backplane', backplane)]);
    const unserved = models
      .served()
      .filter(({ id }) => presence.workersOf(id).length === 0)
      .map(({ id }) => `no worker serves ${id}`);
    const reasons = [...away.flat(), ...unserved];
    if (reasons.length > 0) throw new ServiceError('overloaded', `Not ready: ${reasons.join('; ')}.`);
    return { status: 'ready' };
  });
}
