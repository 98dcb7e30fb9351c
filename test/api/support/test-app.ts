import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import type { ApiDatabase } from '../../../src/api/api-database.js';
import { type AppOptions, buildApp } from '../../../src/api/app.js';
import type { IdempotencyStore } from '../../../src/api/idempotency-store.js';
import type { KeyRecord } from '../../../src/api/key-store.js';
import type { EndedRequest, LimitStore } from '../../../src/api/limit-store.js';
import type { UsageReader } from '../../../src/api/usage-report.js';
import type { UsageEntry } from '../../../src/api/usage-store.js';
import { catalogueSchema } from '../../../src/models/catalogue.js';
import { hashKey } from '../../../src/platform/keys.js';
import type { ModelState } from '../../../src/platform/model-registry/model-state.js';
import type { NoticeReader } from '../../../src/platform/notices/notices.js';
import { MemoryBackplane } from '../../support/memory-backplane.js';
import { FakeWorker } from './fake-worker.js';

export const secret = 'sk-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGH';
export const authorization = `Bearer ${secret}`;
export const accountId = '0190a000-0000-7000-8000-000000000001';
export const keyId = '0190a000-0000-7000-8000-000000000002';

const source = { from: 'file', path: 'nowhere' };

export const catalogue = catalogueSchema.parse({
  models: [
    {
      id: 'tiny-chat',
      task: 'chat',
      sources: [source],
      contextLength: 512,
      created: 1_700_000_000,
      defaults: { maxTokens: 64, temperature: 0.5 },
    },
    { id: 'owner/seeing-chat', task: 'chat', sources: [source], capabilities: ['vision'] },
    { id: 'tiny-rerank', task: 'rerank', sources: [source] },
  ],
});

/** Keys and usage in memory, with the failures a test asks for. */
export class FakeDatabase implements ApiDatabase {
  readonly records = new Map<string, KeyRecord>();
  readonly entries: UsageEntry[] = [];
  readonly touched: string[] = [];
  readonly settled: EndedRequest[] = [];
  finds = 0;
  away = false;
  /** What operators decided, and how often it was read. */
  modelLoads = 0;
  readonly modelStates = new Map<string, ModelState>();
  readonly #listeners = new Set<() => void>();

  constructor() {
    this.addKey(secret, {});
  }

  addKey(text: string, record: Partial<KeyRecord>): void {
    const sha256 = hashKey(text);
    const usual = {
      id: keyId,
      accountId,
      sha256,
      expiresAt: null,
      revokedAt: null,
      account: { disabled: false, verified: false },
    };
    this.records.set(sha256, { ...usual, ...record });
  }

  readonly keys = {
    find: async (sha256: string) => {
      this.finds++;
      this.#refuseWhenAway();
      return this.records.get(sha256);
    },
    touch: async (id: string) => void this.touched.push(id),
  };

  /** Admits everything. */
  readonly limits: LimitStore = {
    reserve: async (_lane, requests) => {
      this.#refuseWhenAway();
      return requests.map(() => ({
        refused: undefined,
        requests: undefined,
        tokens: undefined,
        at: new Date(),
      }));
    },
    settle: async (_lane, ended) => void this.settled.push(...ended),
    beat: async () => {},
    leave: async () => {},
    sweep: async () => 0,
  };

  readonly models = {
    load: async () => {
      this.#refuseWhenAway();
      this.modelLoads++;
      return new Map(this.modelStates);
    },
  };

  /** Nobody has anything to say. */
  readonly notices: NoticeReader = {
    list: async () => ({ object: 'list', data: [], has_more: false }),
  };

  /** Answers by account and key. */
  readonly #answers = new Map<string, { request: string; answer?: { status: number; body: string } }>();
  readonly idempotency: IdempotencyStore = {
    claim: async ({ accountId: account, key, request }) => {
      const known = this.#answers.get(`${account} ${key}`);
      if (known === undefined) {
        this.#answers.set(`${account} ${key}`, { request });
        return { state: 'first' };
      }
      if (known.request !== request) return { state: 'other' };
      return known.answer === undefined ? { state: 'running' } : { state: 'answered', ...known.answer };
    },
    keep: async ({ accountId: account, key, request }, answer) =>
      void this.#answers.set(`${account} ${key}`, { request, answer }),
    release: async ({ accountId: account, key }) => void this.#answers.delete(`${account} ${key}`),
    held: async () => ({ keys: this.#answers.size, bytes: 0 }),
    removeOld: async () => 0,
  };

  readonly usageReports: UsageReader = { sum: async () => [] };

  readonly usage = {
    add: async (entries: readonly UsageEntry[]) => {
      this.#refuseWhenAway();
      this.entries.push(...entries);
      for (const listener of this.#listeners) listener();
    },
  };

  async check(): Promise<void> {
    this.#refuseWhenAway();
  }

  /** Resolves with the entries once there are `count` of them. */
  async entriesWritten(count = 1): Promise<readonly UsageEntry[]> {
    while (this.entries.length < count) {
      await new Promise<void>((resolve) => this.#listeners.add(resolve));
    }
    return this.entries;
  }

  #refuseWhenAway(): void {
    if (this.away) throw new Error('the database is away');
  }
}

export interface TestService {
  readonly app: FastifyInstance;
  readonly backplane: MemoryBackplane;
  readonly database: FakeDatabase;
  readonly chat: FakeWorker;
  readonly rerank: FakeWorker;
  /** Log lines, parsed. */
  readonly log: Record<string, unknown>[];
  close(): Promise<void>;
}

type Overrides = Partial<Pick<AppOptions, 'timing' | 'presence' | 'logger'>> & {
  config?: Partial<AppOptions['config']>;
  backplane?: MemoryBackplane;
  database?: FakeDatabase;
};

/** An app with workers that do what the test says. */
export async function startTestService(overrides: Overrides = {}): Promise<TestService> {
  const backplane = overrides.backplane ?? new MemoryBackplane();
  const database = overrides.database ?? new FakeDatabase();
  const log: Record<string, unknown>[] = [];
  const app = await buildApp({
    apiId: 'api-under-test',
    database,
    backplane,
    catalogue,
    version: '1.2.3',
    presence: overrides.presence ?? { workersOf: () => [] },
    logger:
      overrides.logger ?? pino({ level: 'trace' }, { write: (line) => void log.push(JSON.parse(line)) }),
    config: { bodyLimitBytes: 1 << 20, requestTimeoutMs: 60_000, maxQueueDepth: 100, ...overrides.config },
    timing: { drainMs: 0, ...overrides.timing },
  });
  const chat = await FakeWorker.start(backplane, 'tiny-chat');
  const rerank = await FakeWorker.start(backplane, 'tiny-rerank');
  return {
    app,
    backplane,
    database,
    chat,
    rerank,
    log,
    close: async () => {
      await app.close();
      await Promise.all([chat.stop(), rerank.stop()]);
    },
  };
}

export const chatBody = { model: 'tiny-chat', messages: [{ role: 'user', content: 'Hello' }] };

/** A request to the chat operation, for `inject`. */
export function chatRequest(body: Record<string, unknown> = {}, headers: Record<string, string> = {}) {
  return {
    method: 'POST',
    url: '/v1/chat/completions',
    headers: { authorization, ...headers },
    payload: { ...chatBody, ...body },
  } as const;
}

export function rerankRequest(body: Record<string, unknown> = {}) {
  return {
    method: 'POST',
    url: '/v1/rerank',
    headers: { authorization },
    payload: { model: 'tiny-rerank', query: 'q', documents: ['a', 'b', 'c'], ...body },
  } as const;
}
