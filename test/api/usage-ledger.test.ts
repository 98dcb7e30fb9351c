import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { UsageLedger } from '../../src/api/usage-ledger.js';
import type { UsageEntry } from '../../src/api/usage-store.js';
import { accountId, FakeDatabase, keyId } from './support/test-app.js';

const timing = { gatherMs: 1, retryMs: 1, maxRetryMs: 2 };

function entry(id: string, fields: Partial<UsageEntry> = {}): UsageEntry {
  return {
    id,
    accountId,
    keyId,
    model: 'm',
    operation: 'chat',
    endUser: null,
    promptTokens: 1,
    completionTokens: 1,
    cachedTokens: 0,
    finishReason: 'stop',
    status: 200,
    queueMs: 1,
    firstTokenMs: 2,
    totalMs: 3,
    createdAt: new Date(),
    ...fields,
  };
}

function openLedger(maxKept?: number) {
  const database = new FakeDatabase();
  const lines: Record<string, unknown>[] = [];
  const logger = pino({ level: 'trace' }, { write: (line) => void lines.push(JSON.parse(line)) });
  return { database, lines, ledger: new UsageLedger({ store: database.usage, logger, timing, maxKept }) };
}

describe('the ledger', () => {
  it('writes entries that come together at once', async () => {
    const { database, ledger } = openLedger();
    const sizes: number[] = [];
    const add = database.usage.add;
    database.usage.add = (entries) => {
      sizes.push(entries.length);
      return add(entries);
    };
    for (const id of ['a', 'b', 'c']) ledger.record(entry(id));
    await database.entriesWritten(3);
    expect(sizes).toEqual([3]);
  });

  it('tries again when the database comes back', async () => {
    const { database, ledger } = openLedger();
    const add = database.usage.add;
    let failures = 0;
    database.usage.add = async (entries) => {
      if (++failures <= 3) throw new Error('away');
      return add(entries);
    };
    ledger.record(entry('a'));
    expect((await database.entriesWritten()).map(({ id }) => id)).toEqual(['a']);
  });

  it('writes what is left when it is closed', async () => {
    const { database, ledger } = openLedger();
    for (let i = 0; i < 1_200; i++) ledger.record(entry(String(i)));
    await ledger.close({ graceMs: 5_000 });
    expect(database.entries).toHaveLength(1_200);
  });

  it('says how much is lost when it is closed while the database is away', async () => {
    const { database, ledger, lines } = openLedger();
    database.away = true;
    ledger.record(entry('a'));
    await ledger.close({ graceMs: 5_000 });
    expect(lines).toContainEqual(expect.objectContaining({ lost: 1, level: 50 }));
  });

  it('keeps no more than its bound, and loses the oldest', async () => {
    const { database, ledger, lines } = openLedger(2);
    for (const id of ['a', 'b', 'c']) ledger.record(entry(id));
    await ledger.close({ graceMs: 5_000 });
    expect(database.entries.map(({ id }) => id)).toEqual(['b', 'c']);
    expect(lines).toContainEqual(expect.objectContaining({ lost: 1, level: 50 }));
  });
});
