import type { ChatJob, RerankJob } from '../../../src/contract/job.js';
import { controlChannel, presenceChannel } from '../../../src/contract/names.js';
import type { GenerateRequest } from '../../../src/engine/request.js';
import { catalogueModelSchema } from '../../../src/models/catalogue.js';
import { type DecoderManifest, type EncoderManifest, manifestFormat } from '../../../src/models/manifest.js';
import { createLogger } from '../../../src/platform/logger.js';
import type { Tokenizer } from '../../../src/worker/tokenizer.js';
import { createWorker, type Worker } from '../../../src/worker/worker.js';
import { MemoryBackplane } from '../../support/memory-backplane.js';
import { FakeEngine } from './fake-engine.js';
import { fixtureTokenizer, readFixture } from './fixture-model.js';
import { ReplyLog } from './reply-log.js';

export const model = 'acme/model';
export const apiId = 'api-1';

export const decoderManifest: DecoderManifest = {
  format: manifestFormat,
  kind: 'decoder',
  architecture: 'llama',
  weights: 'float32',
  sourceSha256: '0'.repeat(64),
  vocabularySize: 512,
  contextLength: 128,
  layers: 2,
  heads: 4,
  kvHeads: 2,
  headSize: 16,
  kvFormat: 'float32',
  decodeWidth: 1,
  endTokens: [2],
  chatTemplate: readFixture('decoder/llama-tied', 'chat_template.jinja'),
  beginText: '<|im_start|>',
  endText: '<|im_end|>',
  generation: {},
};

export const encoderManifest: EncoderManifest = {
  format: manifestFormat,
  kind: 'encoder',
  architecture: 'bert',
  weights: 'float32',
  sourceSha256: '0'.repeat(64),
  vocabularySize: 512,
  contextLength: 128,
  scoring: 'cross-encoder',
  dimension: 1,
  paddingToken: 0,
  tokenTypes: true,
  firstPosition: 0,
};

export const chatTokenizer = fixtureTokenizer('decoder/llama-tied');
export const bertTokenizer = fixtureTokenizer('encoder/bert-cross-encoder');

/** A worker between a fake engine and a backplane in memory, with an API process that listens. */
export interface Workbench {
  readonly worker: Worker;
  readonly engine: FakeEngine;
  readonly backplane: MemoryBackplane;
  readonly log: ReplyLog;
  /** Enqueues jobs, all before any can be taken. */
  enqueue(...jobs: (ChatJob | RerankJob)[]): Promise<void>;
  /**
   * Enqueues chat jobs one by one, each once the engine has the one before, and gives what the engine was asked for,
   * in the same order. Of jobs that are enqueued together, any may be tokenized first.
   */
  generating<Jobs extends readonly ChatJob[]>(
    ...jobs: Jobs
  ): Promise<{ [Index in keyof Jobs]: GenerateRequest }>;
  /** Puts anything into the queue. */
  enqueueRaw(payload: unknown): Promise<void>;
  cancel(id: string): Promise<void>;
  /** What an API process says of itself. */
  announceApi(options: { leaving: boolean }): Promise<void>;
  close(): Promise<void>;
}

export interface WorkbenchOptions {
  readonly manifest?: DecoderManifest | EncoderManifest;
  readonly tokenizer?: Tokenizer;
  readonly maxSequences?: number;
  readonly contextLength?: number;
  readonly now?: () => number;
}

export async function openWorkbench(options: WorkbenchOptions = {}): Promise<Workbench> {
  const manifest = options.manifest ?? decoderManifest;
  const isChat = manifest.kind === 'decoder';
  const backplane = new MemoryBackplane();
  const engine = new FakeEngine(manifest);
  const log = await ReplyLog.listen(backplane.channel, apiId);
  const worker = await createWorker({
    id: 'worker-1',
    config: { maxSequences: options.maxSequences ?? 4, lockMs: 1_000 },
    entry: catalogueModelSchema.parse({
      id: model,
      task: isChat ? 'chat' : 'rerank',
      sources: [{ from: 'file', path: 'model' }],
      contextLength: options.contextLength,
    }),
    tokenizer: options.tokenizer ?? (isChat ? chatTokenizer : bertTokenizer),
    engine,
    backplane,
    logger: createLogger({ level: 'silent', name: 'test' }),
    clock: { now: options.now ?? Date.now },
  });
  const queue = backplane.queue(model);
  return {
    worker,
    engine,
    backplane,
    log,
    enqueue: async (...jobs) => void (await Promise.all(jobs.map((job) => queue.add(job)))),
    generating: async <Jobs extends readonly ChatJob[]>(...jobs: Jobs) => {
      const requests: GenerateRequest[] = [];
      for (const job of jobs) {
        await queue.add(job);
        requests.push(await engine.nextGenerate());
      }
      return requests as { [Index in keyof Jobs]: GenerateRequest };
    },
    enqueueRaw: (payload) => queue.add(payload as ChatJob),
    cancel: (id) => backplane.channel.publish(controlChannel(model), JSON.stringify({ type: 'cancel', id })),
    announceApi: ({ leaving }) =>
      backplane.channel.publish(presenceChannel, JSON.stringify({ role: 'api', id: apiId, leaving })),
    close: async () => {
      await worker.close({ drainMs: 0 });
      await backplane.close();
    },
  };
}

export function chatJob(fields: Partial<ChatJob> = {}): ChatJob {
  const now = Date.now();
  return {
    id: 'request-1',
    replyTo: apiId,
    model,
    enqueuedAt: now,
    deadlineAt: now + 60_000,
    priority: 'interactive',
    kind: 'chat',
    messages: [{ role: 'user', content: 'How many people live in Berlin?' }],
    stop: [],
    n: 1,
    ...fields,
  };
}

export function rerankJob(fields: Partial<RerankJob> = {}): RerankJob {
  const now = Date.now();
  return {
    id: 'request-1',
    replyTo: apiId,
    model,
    enqueuedAt: now,
    deadlineAt: now + 60_000,
    priority: 'interactive',
    kind: 'rerank',
    query: 'How many people live in Berlin?',
    documents: ['one', 'two'],
    maxChunksPerDoc: 1024,
    overlapTokens: 0,
    ...fields,
  };
}
