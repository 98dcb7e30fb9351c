import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { abortable } from '../platform/abortable.js';
import type { Backplane } from '../platform/backplane/backplane.js';
import type { PresenceBoard } from '../platform/presence.js';
import type { UsageEntry } from './usage-store.js';
import { addWorkerMetrics } from './worker-metrics.js';

/** A scrape does not wait longer than this for the length of a queue. */
const depthTimeoutMs = 1_000;

const latencyBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

/** What this process counts, for Prometheus. Labels take values of the catalogue only, never of a client. */
export class ApiMetrics {
  readonly registry: Registry;
  readonly #requests: Counter<'operation' | 'model' | 'status'>;
  readonly #firstToken: Histogram<'operation' | 'model'>;
  readonly #duration: Histogram<'operation' | 'model'>;
  readonly #tokens: Counter<'model' | 'kind'>;

  constructor(options: {
    registry: Registry;
    backplane: Pick<Backplane, 'queue'>;
    presence: Pick<PresenceBoard, 'workersOf'>;
    models: readonly string[];
    /** Requests that are being answered. */
    inFlight: () => number;
  }) {
    const { registry, backplane, presence, models, inFlight } = options;
    const registers = [registry];
    this.registry = registry;
    this.#requests = new Counter({
      name: 'headrace_requests_total',
      help: 'Responses by operation, model ("" when none was found) and HTTP status (499: the client had gone).',
      labelNames: ['operation', 'model', 'status'],
      registers,
    });
    this.#firstToken = new Histogram({
      name: 'headrace_first_token_seconds',
      help: 'From enqueueing to the first token or score.',
      labelNames: ['operation', 'model'],
      buckets: latencyBuckets,
      registers,
    });
    this.#duration = new Histogram({
      name: 'headrace_request_seconds',
      help: 'From the arrival of a request to its end.',
      labelNames: ['operation', 'model'],
      buckets: latencyBuckets,
      registers,
    });
    this.#tokens = new Counter({
      name: 'headrace_tokens_total',
      help: 'Tokens spent, by kind: prompt or completion.',
      labelNames: ['model', 'kind'],
      registers,
    });
    new Gauge({
      name: 'headrace_requests_in_flight',
      help: 'Requests of this process that wait or are being answered.',
      registers,
      collect() {
        this.set(inFlight());
      },
    });
    new Gauge({
      name: 'headrace_queue_depth',
      help: 'Jobs that wait for a worker; no sample while the queue does not answer.',
      labelNames: ['model'],
      registers,
      async collect() {
        this.reset();
        const count = async (model: string) => {
          const depth = backplane.queue(model).depth();
          this.set({ model }, await abortable(depth, AbortSignal.timeout(depthTimeoutMs)));
        };
        await Promise.allSettled(models.map(count));
      },
    });
    addWorkerMetrics({ registry, presence, models });
  }

  /** A response was sent, or its client has gone. */
  countResponse(labels: { operation: string; model: string; status: number }): void {
    this.#requests.inc(labels);
  }

  /** A request that had been enqueued is over. */
  observe({ operation, model, ...entry }: UsageEntry): void {
    this.#duration.observe({ operation, model }, entry.totalMs / 1000);
    if (entry.firstTokenMs !== null)
      this.#firstToken.observe({ operation, model }, entry.firstTokenMs / 1000);
    this.#tokens.inc({ model, kind: 'prompt' }, entry.promptTokens);
    this.#tokens.inc({ model, kind: 'completion' }, entry.completionTokens);
  }
}
