import { catalogueChannel } from '../../contract/names.js';
import type { Catalogue, CatalogueModel } from '../../models/catalogue.js';
import type { Channel, Subscription } from '../backplane/backplane.js';
import type { Logger } from '../logger.js';
import { initialState, isServed, type ModelState } from './model-state.js';
import type { ModelStateStore } from './model-states.js';

/** How soon a change is seen whose message was lost. */
const pollMs = 1_000;

export interface LiveModel {
  readonly entry: CatalogueModel;
  readonly state: ModelState;
}

export interface LiveCatalogueOptions {
  readonly catalogue: Catalogue;
  readonly store: ModelStateStore;
  readonly channel: Channel;
  readonly logger: Logger;
  /** Calls `tick` every so many milliseconds; returns how to stop. */
  readonly every?: (ms: number, tick: () => void) => () => void;
}

/**
 * The models of the catalogue file with what operators decided about them, as of a moment ago: it is read again when
 * a message says that something has changed, and every second. While the database is away the last answer holds.
 */
export class LiveCatalogue {
  readonly #options: LiveCatalogueOptions;
  readonly #listeners = new Set<() => void>();
  #models: ReadonlyMap<string, LiveModel>;
  #subscription: Subscription | undefined;
  #stopPolling = () => {};
  #reading: Promise<void> | undefined;
  #outdated = false;
  #away = false;

  /** @throws Error when the states cannot be read, or the channel cannot be listened to. */
  static async open(options: LiveCatalogueOptions): Promise<LiveCatalogue> {
    const live = new LiveCatalogue(options);
    live.#subscription = await options.channel.subscribe(catalogueChannel, () => void live.refresh());
    try {
      live.#accept(await options.store.load());
    } catch (error) {
      await live.close();
      throw error;
    }
    live.#stopPolling = (options.every ?? every)(pollMs, () => void live.refresh());
    return live;
  }

  private constructor(options: LiveCatalogueOptions) {
    this.#options = options;
    this.#models = new Map();
  }

  /** Every model, in the order of the catalogue. */
  get models(): readonly LiveModel[] {
    return [...this.#models.values()];
  }

  find(id: string): LiveModel | undefined {
    return this.#models.get(id);
  }

  /** Those that take requests now. */
  served(now = new Date()): CatalogueModel[] {
    return this.models.filter(({ state }) => isServed(state, now)).map(({ entry }) => entry);
  }

  /** Calls `listener` each time that the states were read; returns how to stop. */
  onRefresh(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Reads the states. Resolves when what was true at the time of the call is known, or cannot be. */
  async refresh(): Promise<void> {
    // What is being read may be older than this call.
    this.#outdated = true;
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    await this.#reading;
  }

  async close(): Promise<void> {
    this.#stopPolling();
    this.#listeners.clear();
    await this.#subscription?.close();
    await this.#reading;
  }

  async #read(): Promise<void> {
    const { store, logger } = this.#options;
    while (this.#outdated) {
      this.#outdated = false;
      try {
        this.#accept(await store.load());
        if (this.#away) logger.info('the states of models are known again');
        this.#away = false;
      } catch (error) {
        if (!this.#away)
          logger.warn({ err: error }, 'the states of models cannot be read; the last ones hold');
        this.#away = true;
      }
    }
  }

  #accept(states: ReadonlyMap<string, ModelState>): void {
    const { models } = this.#options.catalogue;
    this.#models = new Map(
      models.map((entry) => [entry.id, { entry, state: states.get(entry.id) ?? initialState }]),
    );
    for (const listener of this.#listeners) listener();
  }
}

function every(ms: number, tick: () => void): () => void {
  const timer = setInterval(tick, ms).unref();
  return () => clearInterval(timer);
}
