/**
 * What the API adds to a request: an engine that answers at once, behind the real queue and channel, with the API, the
 * engine, the servers and the client in processes of their own on this machine:
 *
 *     npm run bench:api -- [--rounds N] [--seconds S] [--backplane redis|postgres] [--profile FOLDER] [--json]
 */
import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { type Load, load } from './api/http-load.js';
import { measureParsing } from './api/parsing.js';
import { cpuMs, end, freePort, model, type Servers, start, startServers } from './api/servers.js';
import { median } from './load/percentiles.js';

type Kind = 'redis' | 'postgres';

interface Round {
  readonly many: Load;
  readonly single: Load;
  /** Processor time of a request among many: what the API costs however busy the machine is otherwise. */
  readonly apiCpuMs: number;
  readonly engineCpuMs: number;
}

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '5' },
    backplane: { type: 'string' },
    profile: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});
const seconds = Number(values.seconds);
const loadBefore = loadavg()[0]!;

const servers = await startServers();
const rounds: Record<Kind, Round[]> = { redis: [], postgres: [] };
try {
  for (let i = 0; i < Number(values.rounds); i++) {
    // They take turns, so that what else the machine does falls on both.
    for (const kind of ['redis', 'postgres'] as const) {
      const environment = servers.environments[kind];
      if (environment === undefined || (values.backplane ?? kind) !== kind) continue;
      rounds[kind].push(await runRound(environment, servers));
    }
  }
} finally {
  await servers.close();
}

const rows = (['redis', 'postgres'] as const)
  .filter((kind) => rounds[kind].length > 0)
  .map((kind) => {
    const many = rounds[kind].map((round) => round.many.requestsPerSecond);
    const single = rounds[kind].map((round) => round.single.p50);
    const middle = (numbers: readonly number[]) => median(numbers) ?? Number.NaN;
    return {
      backplane: kind,
      'requests/s, 64 clients: best': Math.round(Math.max(...many)),
      median: Math.round(middle(many)),
      'p50 of one client, ms: best': round(Math.min(...single)),
      'median ': round(middle(single)),
      'API CPU ms': round(middle(rounds[kind].map(({ apiCpuMs }) => apiCpuMs))),
      'engine CPU ms': round(middle(rounds[kind].map(({ engineCpuMs }) => engineCpuMs))),
    };
  });
const parsing = await measureParsing();
const result = { cores: availableParallelism(), loadBefore: round(loadBefore), rows, parsing };
if (values.json) console.log(JSON.stringify(result, null, 2));
else {
  console.log(`${result.cores} cores, load before: ${result.loadBefore}`);
  console.table(rows);
  console.log(
    `parsing a request with 128 tools: ${parsing.firstMs} ms the first time, ${parsing.medianMs} ms then; warming up: ${parsing.warmUpMs} ms`,
  );
}

async function runRound(environment: Readonly<Record<string, string>>, { key }: Servers): Promise<Round> {
  const port = await freePort();
  const profile = values.profile;
  const settings = { ...environment, HEADRACE_PORT: String(port) };
  const engine = await start('engine-process.js', { args: [model], environment, profile });
  const api = await start('api-process.js', { environment: settings, profile });
  try {
    const request = chatRequest(key);
    await load({ port, request, clients: 16, seconds: 2 });
    const before = [await cpuMs(api), await cpuMs(engine)];
    const many = await load({ port, request, clients: 64, seconds });
    const after = [await cpuMs(api), await cpuMs(engine)];
    const [apiCpuMs, engineCpuMs] = after.map((ms, i) => (ms - before[i]!) / many.requests);
    const single = await load({ port, request, clients: 1, seconds });
    return { many, single, apiCpuMs: apiCpuMs!, engineCpuMs: engineCpuMs! };
  } finally {
    await end(api);
    await end(engine);
  }
}

function chatRequest(key: string): string {
  const body = JSON.stringify({
    model,
    messages: [
      { role: 'system', content: 'Answer in one sentence.' },
      { role: 'user', content: 'What is a headrace, and what does it lead where? '.repeat(8) },
    ],
    temperature: 0.7,
    max_tokens: 64,
  });
  const head = [
    'POST /v1/chat/completions HTTP/1.1',
    'host: 127.0.0.1',
    `authorization: Bearer ${key}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  return `${head.join('\r\n')}\r\n\r\n${body}`;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
