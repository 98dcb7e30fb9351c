import { Counter, Gauge, type Registry } from 'prom-client';
import type { EngineCounters } from '../contract/presence.js';
import type { PresenceBoard, WorkerPresence } from '../platform/presence.js';

interface WorkerMetric {
  readonly name: string;
  readonly help: string;
  /** Undefined when the worker has not said. */
  readonly read: (worker: WorkerPresence) => number | undefined;
}

const requests: readonly WorkerMetric[] = [
  {
    name: 'headrace_worker_held_requests',
    help: 'Requests a worker holds, as it last said; one sample for each worker that is alive.',
    read: ({ held }) => held,
  },
  {
    name: 'headrace_worker_running_requests',
    help: "Requests a worker holds that are past its engine's queue, as it last said.",
    read: ({ running }) => running,
  },
];

/** What an engine holds now. */
const holdings: readonly WorkerMetric[] = [
  engineMetric('running', 'running_sequences', 'Choices that hold a slot, or requests of an encoder.'),
  engineMetric('waiting', 'waiting_requests', 'Requests that wait for a slot or for memory.'),
  engineMetric('slots', 'slots', 'Sequences that can be decoded together.'),
  engineMetric('kvBytesUsed', 'kv_used_bytes', 'Memory of the KV cache that is in use.'),
  engineMetric('kvBytesBudget', 'kv_budget_bytes', 'Memory that the KV cache may use.'),
  engineMetric('kvPositions', 'kv_positions', 'Positions that the KV cache holds.'),
  engineMetric('prefixBytesUsed', 'prefix_used_bytes', 'Memory of beginnings of prompts that are kept.'),
];

/** What an engine has done since it started. */
const totals: readonly WorkerMetric[] = [
  engineMetric('steps', 'steps_total', 'Steps of the engine.'),
  engineMetric('prefillTokens', 'prefill_tokens_total', 'Tokens of prompts that were read.'),
  engineMetric('cachedTokens', 'cached_tokens_total', 'Tokens of prompts that need not be read again.'),
  engineMetric('decodeTokens', 'decode_tokens_total', 'Tokens that were drawn.'),
  engineMetric('draftTokens', 'draft_tokens_total', 'Tokens that were run because they might be drawn next.'),
  engineMetric('acceptedDraftTokens', 'accepted_draft_tokens_total', 'Those of them that were drawn.'),
  engineMetric('encodedTokens', 'encoded_tokens_total', 'Tokens that an encoder has read.'),
  engineMetric('cancelled', 'cancelled_requests_total', 'Requests that were given up.'),
];

function engineMetric(counter: keyof EngineCounters, name: string, help: string): WorkerMetric {
  return { name: `headrace_engine_${name}`, help, read: ({ engine }) => engine?.[counter] };
}

/**
 * Metrics of the workers that are alive, as each last described itself. A worker that has gone takes its samples
 * along, so there are never more than workers; its successor counts from zero under an id of its own.
 */
export function addWorkerMetrics(options: {
  registry: Registry;
  presence: Pick<PresenceBoard, 'workersOf'>;
  models: readonly string[];
}): void {
  const { registry, presence, models } = options;
  const samples = function* (read: WorkerMetric['read']) {
    for (const worker of models.flatMap((model) => presence.workersOf(model))) {
      const value = read(worker);
      if (value !== undefined) yield { labels: { model: worker.model, worker: worker.id }, value };
    }
  };
  const labelNames = ['model', 'worker'] as const;
  const registers = [registry];
  for (const { name, help, read } of [...requests, ...holdings]) {
    new Gauge({
      name,
      help,
      labelNames,
      registers,
      collect() {
        this.reset();
        for (const { labels, value } of samples(read)) this.set(labels, value);
      },
    });
  }
  for (const { name, help, read } of totals) {
    new Counter({
      name,
      help,
      labelNames,
      registers,
      collect() {
        this.reset();
        for (const { labels, value } of samples(read)) this.inc(labels, value);
      },
    });
  }
}
