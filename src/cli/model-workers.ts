import type { CatalogueModel } from '../models/catalogue.js';
import type { Backplane } from '../platform/backplane/backplane.js';
import type { Logger } from '../platform/logger.js';
import type { PresenceBoard } from '../platform/presence.js';
import type { ChildSpecification } from './supervised-child.js';
import type { Supervisor } from './supervisor.js';

/** Requests of a model that went offline are over when none was seen for this long: presence is told every second. */
const quietMs = 3_000;
/** Past this a worker that does not leave is killed. */
const leaveMs = 5_000;
/** A worker that could not be started is tried again after this long. */
const retryMs = 30_000;

export interface ModelWorkersOptions {
  readonly supervisor: Pick<Supervisor, 'start' | 'retire'>;
  readonly specificationOf: (modelId: string) => ChildSpecification;
  readonly logger: Logger;
  /** Milliseconds that only ever grow. */
  readonly now?: () => number;
}

/** What tells whether anybody still waits for a model. */
export interface Traffic {
  readonly backplane: Pick<Backplane, 'queue'>;
  readonly presence: Pick<PresenceBoard, 'workersOf'>;
}

/**
 * A worker for each model that is served, and none for those that are not. One whose model is no longer served leaves
 * once its requests have ended, those that wait in the queue included.
 */
export class ModelWorkers {
  readonly #options: ModelWorkersOptions;
  readonly #now: () => number;
  readonly #workers = new Map<string, 'starting' | 'running' | 'leaving'>();
  /** Since when nobody was seen to wait for a model that is no longer served. */
  readonly #quietSince = new Map<string, number>();
  readonly #retryAt = new Map<string, number>();
  #following = false;

  constructor(options: ModelWorkersOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  /** Resolves when there is a worker for each. @throws Error saying why when one cannot be started. */
  async start(models: readonly CatalogueModel[]): Promise<void> {
    await Promise.all(models.map(({ id }) => this.#start(id)));
  }

  /** To be called again and again, with the models that are served by then. */
  async follow(served: readonly CatalogueModel[], traffic: Traffic): Promise<void> {
    if (this.#following) return;
    this.#following = true;
    const wanted = new Set(served.map(({ id }) => id));
    for (const id of wanted) this.#want(id);
    const unwanted = [...this.#workers].filter(([id, state]) => state === 'running' && !wanted.has(id));
    await Promise.all(unwanted.map(([id]) => this.#release(id, traffic)));
    this.#following = false;
  }

  #want(id: string): void {
    this.#quietSince.delete(id);
    if (this.#workers.has(id) || this.#now() < (this.#retryAt.get(id) ?? 0)) return;
    const { logger } = this.#options;
    logger.info(`${id} was put online; starting a worker`);
    this.#start(id).catch((error: Error) => {
      this.#retryAt.set(id, this.#now() + retryMs);
      logger.error(`${error.message}; trying again in ${retryMs / 1000} s`);
    });
  }

  async #release(id: string, traffic: Traffic): Promise<void> {
    const now = this.#now();
    const since = this.#quietSince.get(id);
    if (since === undefined || (await isBusy(id, traffic))) {
      this.#quietSince.set(id, now);
    } else if (now - since >= quietMs) {
      this.#quietSince.delete(id);
      void this.#stop(id);
    }
  }

  async #start(id: string): Promise<void> {
    this.#workers.set(id, 'starting');
    try {
      await this.#options.supervisor.start(this.#options.specificationOf(id));
      this.#workers.set(id, 'running');
    } catch (error) {
      this.#workers.delete(id);
      throw error;
    }
  }

  async #stop(id: string): Promise<void> {
    this.#workers.set(id, 'leaving');
    const { name } = this.#options.specificationOf(id);
    await this.#options.supervisor.retire(name, { graceMs: leaveMs });
    this.#workers.delete(id);
    this.#options.logger.info(`${id} was put offline; ${name} has left`);
  }
}

async function isBusy(id: string, { backplane, presence }: Traffic): Promise<boolean> {
  if (presence.workersOf(id).some(({ held }) => held > 0)) return true;
  // While nobody knows, somebody may be waiting.
  const depth = await backplane
    .queue(id)
    .depth()
    .catch(() => 1);
  return depth > 0;
}
