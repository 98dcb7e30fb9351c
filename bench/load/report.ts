import { formatTable } from '../../src/cli/table.js';
import type { Percentiles } from './percentiles.js';
import type { Workload } from './service.js';
import type { Summary } from './summary.js';

/** Summaries as a table for people, with what went wrong below it. */
export function formatReport(task: Workload['task'], summaries: readonly Summary[]): string {
  const columns = task === 'chat' ? chatColumns : rerankColumns;
  const rows = summaries.map((summary) => Object.values(columns).map((cell) => cell(summary)));
  const failures = summaries.flatMap(({ clients, failures }) =>
    Object.entries(failures).map(([message, count]) => `${clients} clients, ${count} times: ${message}`),
  );
  return [formatTable(Object.keys(columns), rows), ...failures].join('\n');
}

type Columns = Readonly<Record<string, (summary: Summary) => string>>;

const common: Columns = {
  clients: ({ clients }) => String(clients),
  requests: ({ requests }) => String(requests),
  errors: ({ errors }) => String(errors),
  'requests/s': ({ requestsPerSecond }) => requestsPerSecond.toFixed(2),
};

const chatColumns: Columns = {
  ...common,
  'output tok/s': ({ outputTokensPerSecond }) => outputTokensPerSecond.toFixed(1),
  'tokens in': ({ promptTokens }) => promptTokens.toFixed(0),
  cached: ({ cachedTokens }) => cachedTokens.toFixed(0),
  out: ({ outputTokens }) => outputTokens.toFixed(1),
  'first token ms p50/p95/p99': ({ firstTokenMs }) => formatPercentiles(firstTokenMs),
  'inter-token ms p50/p95/p99': ({ interTokenMs }) => formatPercentiles(interTokenMs),
  'client CPU': ({ clientCpu }) => `${(clientCpu * 100).toFixed(0)}%`,
};

const rerankColumns: Columns = {
  ...common,
  'documents/s': ({ documentsPerSecond }) => documentsPerSecond.toFixed(1),
  tokens: ({ promptTokens }) => promptTokens.toFixed(0),
  'latency ms p50/p95/p99': ({ latencyMs }) => formatPercentiles(latencyMs),
  'client CPU': ({ clientCpu }) => `${(clientCpu * 100).toFixed(0)}%`,
};

function formatPercentiles({ p50, p95, p99 }: Percentiles): string {
  return [p50, p95, p99].map((ms) => (ms === null ? '-' : ms.toFixed(ms < 100 ? 1 : 0))).join(' / ');
}
