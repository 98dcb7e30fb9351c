import type { Logger } from '../platform/logger.js';
import { type ChildSpecification, SupervisedChild } from './supervised-child.js';

export interface SupervisorOptions {
  readonly logger: Logger;
  /** Receives what the children write to standard error, line by line. */
  readonly onLine: (line: string) => void;
  /** The wait before the first restart; it doubles with every further one, up to `maxDelayMs`. */
  readonly firstDelayMs?: number;
  readonly maxDelayMs?: number;
  /** After being ready for this long a child has recovered: its next restart waits `firstDelayMs` again. */
  readonly healthyMs?: number;
}

interface Supervised {
  readonly specification: ChildSpecification;
  process: SupervisedChild;
  failures: number;
  /** It was asked to leave for good. */
  retired: boolean;
  restart?: NodeJS.Timeout;
}

/**
 * Keeps child processes running: one that exits is started again, later each time while it keeps failing. Processes
 * are only ever started by `start` and `#launch`; `retire` ends that for one of them, `stop` and `kill` for all.
 */
export class Supervisor {
  readonly #options: Required<SupervisorOptions>;
  readonly #children = new Set<Supervised>();
  #stopped = false;

  constructor(options: SupervisorOptions) {
    this.#options = { firstDelayMs: 200, maxDelayMs: 30_000, healthyMs: 30_000, ...options };
  }

  /**
   * Starts a child and resolves when it is ready.
   * @throws Error saying why when it exits instead; only a child that was ready once is started again.
   */
  async start(specification: ChildSpecification): Promise<void> {
    if (this.#stopped) throw new Error('The supervisor was stopped.');
    const process = new SupervisedChild(specification, this.#options.onLine);
    const child: Supervised = { specification, process, failures: 0, retired: false };
    this.#children.add(child);
    try {
      await process.ready;
    } catch (error) {
      this.#children.delete(child);
      throw error;
    }
    this.#watch(child);
  }

  /** Asks the child of this name to exit, kills it when it has not after `graceMs`, and starts it no more. */
  async retire(name: string, { graceMs }: { graceMs: number }): Promise<void> {
    const child = [...this.#children].find(({ specification }) => specification.name === name);
    if (child === undefined) return;
    child.retired = true;
    clearTimeout(child.restart);
    await child.process.stop(graceMs);
    this.#children.delete(child);
  }

  /** Asks every child to exit and kills those that have not after `graceMs`. */
  async stop({ graceMs }: { graceMs: number }): Promise<void> {
    this.#forgetRestarts();
    const { logger } = this.#options;
    await Promise.all(
      [...this.#children].map(async ({ specification, process }) => {
        if (await process.stop(graceMs)) return;
        logger.warn(`${specification.name} did not stop within ${graceMs / 1000} s and was killed`);
      }),
    );
  }

  /** Kills every child without asking. */
  kill(): void {
    this.#forgetRestarts();
    for (const { process } of this.#children) process.kill();
  }

  #forgetRestarts(): void {
    this.#stopped = true;
    for (const { restart } of this.#children) clearTimeout(restart);
  }

  #watch(child: Supervised): void {
    void child.process.exited.then(({ how, readyForMs }) => {
      if (this.#stopped || child.retired) return;
      const { logger, firstDelayMs, maxDelayMs, healthyMs } = this.#options;
      if (readyForMs >= healthyMs) child.failures = 0;
      const delayMs = Math.min(maxDelayMs, firstDelayMs * 2 ** child.failures);
      child.failures += 1;
      logger.warn(`${child.specification.name} ${how}; starting it again in ${delayMs / 1000} s`);
      child.restart = setTimeout(() => this.#launch(child), delayMs);
    });
  }

  #launch(child: Supervised): void {
    child.process = new SupervisedChild(child.specification, this.#options.onLine);
    child.process.ready.then(
      () => this.#options.logger.info(`${child.specification.name} is ready again`),
      // The exit is reported where it is acted on.
      () => {},
    );
    this.#watch(child);
  }
}
