import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { LimitGate } from '../src/api/limit-gate.js';
import { PostgresLimitStore } from '../src/api/limit-store.js';
import { openDatabase } from '../src/platform/database/database.js';
import { startEmbeddedPostgres } from '../src/platform/database/embedded-postgres.js';
import { migrate } from '../src/platform/database/migrate.js';
import { createLogger } from '../src/platform/logger.js';

/**
 * How fast requests of one hot account are checked against their limits and settled: many at a time, for the checks in
 * a second, and one after the other, for the time that a check adds to a request. Postgres writes to disk as it would
 * in production.
 */

const logger = createLogger({ level: 'warn', name: 'bench' });
const dataDir = join(tmpdir(), `headrace-bench-limits-${process.pid}`);
const server = await startEmbeddedPostgres({ dataDir, logger });
const databases = [0, 1].map(() => openDatabase(server.url, { logger }));
try {
  await migrate(server.url);
  const { id: accountId } = await databases[0]!.client.account.create({ data: { name: 'hot' } });
  const defaults = { rpm: 1e9, rpd: 1e9, tpm: 1e9, tpd: 1e9, ipm: 1e9, ipd: 1e9 };
  const lane = { accountId, model: 'hot', operation: 'chat', defaults } as const;
  const keyId = randomUUID();
  const gates = databases.map(
    (database, index) =>
      new LimitGate({ apiId: `api-${index}`, store: new PostgresLimitStore(database), logger }),
  );

  const check = async (gate: LimitGate): Promise<number> => {
    const id = randomUUID();
    const begun = performance.now();
    await gate.reserve(lane, { id, keyId, endUser: null, tokens: 600, images: 0 });
    const ms = performance.now() - begun;
    gate.settle(lane, { id, tokens: 450 });
    return ms;
  };
  const run = async (gatesUsed: LimitGate[], options: { atOnce: number; seconds: number }) => {
    const taken: number[] = [];
    const begun = performance.now();
    const until = begun + options.seconds * 1000;
    const client = async (gate: LimitGate) => {
      while (performance.now() < until) taken.push(await check(gate));
    };
    await Promise.all(
      gatesUsed.flatMap((gate) => Array.from({ length: options.atOnce }, () => client(gate))),
    );
    const seconds = (performance.now() - begun) / 1000;
    taken.sort((a, b) => a - b);
    const at = (share: number) => (taken[Math.floor(taken.length * share)] ?? Number.NaN).toFixed(2);
    return `${Math.round(taken.length / seconds)} checks/s, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`;
  };

  const load = loadavg().map((each) => each.toFixed(1));
  console.log(`${cpus().length} cores, load before: ${load.join(' ')}`);
  await run(gates, { atOnce: 16, seconds: 1 });
  console.log(`one at a time:               ${await run(gates.slice(0, 1), { atOnce: 1, seconds: 4 })}`);
  console.log(`64 at once:                  ${await run(gates.slice(0, 1), { atOnce: 64, seconds: 4 })}`);
  console.log(`64 at once in each of two:   ${await run(gates, { atOnce: 64, seconds: 4 })}`);
  await Promise.all(gates.map((gate) => gate.close({ graceMs: 5_000 })));
} finally {
  await Promise.all(databases.map((database) => database.close()));
  await server.stop();
  await rm(dataDir, { recursive: true, force: true });
}
