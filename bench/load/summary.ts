import { type Percentiles, percentiles } from './percentiles.js';
import type { Load } from './run-load.js';

/** What a run measured, as `--json` prints it. Rates are per second, times in milliseconds. */
export interface Summary {
  readonly clients: number;
  readonly requests: number;
  readonly errors: number;
  readonly failures: Readonly<Record<string, number>>;
  readonly seconds: number;
  readonly requestsPerSecond: number;
  readonly outputTokensPerSecond: number;
  readonly documentsPerSecond: number;
  /** Tokens of an average request. */
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  readonly firstTokenMs: Percentiles;
  /** Between pieces of text of one answer. */
  readonly interTokenMs: Percentiles;
  readonly latencyMs: Percentiles;
  /** Cores that the client itself used. */
  readonly clientCpu: number;
}

export function summarize({ clients, elapsedMs, exchanges, failures, clientCpu }: Load): Summary {
  const seconds = elapsedMs / 1000;
  const total = (part: 'promptTokens' | 'cachedTokens' | 'outputTokens' | 'documents') =>
    exchanges.reduce((sum, exchange) => sum + exchange[part], 0);
  const mean = (part: 'promptTokens' | 'cachedTokens' | 'outputTokens') =>
    round(total(part) / Math.max(1, exchanges.length));
  return {
    clients,
    requests: exchanges.length,
    errors: [...failures.values()].reduce((sum, count) => sum + count, 0),
    failures: Object.fromEntries(failures),
    seconds: round(seconds),
    requestsPerSecond: round(exchanges.length / seconds),
    outputTokensPerSecond: round(total('outputTokens') / seconds),
    documentsPerSecond: round(total('documents') / seconds),
    promptTokens: mean('promptTokens'),
    cachedTokens: mean('cachedTokens'),
    outputTokens: mean('outputTokens'),
    firstTokenMs: percentiles(exchanges.flatMap(({ firstTokenMs }) => firstTokenMs ?? [])),
    interTokenMs: percentiles(exchanges.flatMap(({ gapsMs }) => gapsMs)),
    latencyMs: percentiles(exchanges.map(({ latencyMs }) => latencyMs)),
    clientCpu: round(clientCpu),
  };
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
