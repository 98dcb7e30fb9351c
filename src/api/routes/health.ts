import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import { ServiceError } from '../../contract/errors.js';
import type { Backplane } from '../../platform/backplane/backplane.js';
import type { LiveCatalogue } from '../../platform/model-registry/live-catalogue.js';
import type { PresenceBoard } from '../../platform/presence.js';
import type { ApiDatabase } from '../api-database.js';
import { sendError } from '../errors.js';

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

  const log = new ReadinessLog(app.log);
  app.get('/readyz', async (_request, response) => {
    const signal = AbortSignal.timeout(checkTimeoutMs);
    const check = async (name: string, part: { check(signal: AbortSignal): Promise<void> }) => {
      try {
        await part.check(signal);
        return [];
      } catch (cause) {
        return [{ reason: `the ${name} does not answer`, cause }];
      }
    };
    const away = await Promise.all([check('database', database), check('backplane', backplane)]);
    const unserved = models
      .served()
      .filter(({ id }) => presence.workersOf(id).length === 0)
      .map(({ id }) => ({ reason: `no worker serves ${id}` }));
    const lacks: Lack[] = [...away.flat(), ...unserved];
    const reasons = lacks.map(({ reason }) => reason).join('; ');
    log.tell(reasons, lacks.find(({ cause }) => cause)?.cause);
    if (reasons === '') return { status: 'ready' };
    sendError(response, new ServiceError('overloaded', `Not ready: ${reasons}.`));
    return response;
  });
}

interface Lack {
  /** For whoever asks. */
  readonly reason: string;
  /** For the log alone: it names hosts, and whoever can reach this port can ask. */
  readonly cause?: unknown;
}

/** Says once what is lacking and once that all is there: probes ask every few seconds. */
class ReadinessLog {
  readonly #logger: FastifyBaseLogger;
  #told = '';

  constructor(logger: FastifyBaseLogger) {
    this.#logger = logger;
  }

  /** @param reasons empty when nothing is lacking */
  tell(reasons: string, cause: unknown): void {
    if (reasons === this.#told) return;
    this.#told = reasons;
    if (reasons === '') this.#logger.info('ready');
    else this.#logger.warn({ err: cause }, `not ready: ${reasons}`);
  }
}
