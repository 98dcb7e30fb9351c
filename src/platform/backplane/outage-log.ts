import type { Logger } from '../logger.js';

/** Says once that a server has gone and once that it is back, however often a client tries in between. */
export class OutageLog {
  readonly #server: string;
  readonly #logger: Logger;
  #away = false;

  constructor(server: string, logger: Logger) {
    this.#server = server;
    this.#logger = logger;
  }

  lost(error: unknown): void {
    if (this.#away) return;
    this.#away = true;
    this.#logger.warn({ err: error }, `${this.#server} is away; trying until it is back`);
  }

  restored(): void {
    if (!this.#away) return;
    this.#away = false;
    this.#logger.info(`${this.#server} is back`);
  }
}
