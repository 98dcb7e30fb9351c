/** The engine's thread: loads a compiled model, steps its engine, and speaks to the worker's main thread. */
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { compiledFiles, judgeManifest, readManifest } from '../models/manifest.js';
import { DecoderEngine } from './decoder-engine.js';
import { EncoderEngine } from './encoder-engine.js';
import { EngineLoop } from './engine-loop.js';
import { GrammarCache } from './grammar-cache.js';
import { JudgeRunner } from './judge-runner.js';
import { OnnxDecoderRunner } from './onnx-decoder-runner.js';
import { OnnxEncoderRunner } from './onnx-encoder-runner.js';
import { OnnxSession } from './onnx-session.js';
import type { EngineEvent } from './request.js';
import { type FromThread, type ThreadData, type ToThread, unpackEncodeRequest } from './thread-messages.js';

if (!parentPort) throw new Error('thread.js runs in a worker thread only');
const port = parentPort;
const { settings } = workerData as ThreadData;

const manifest = await readManifest(settings.folder);
const session = await OnnxSession.open(join(settings.folder, compiledFiles.graph), {
  threads: settings.threads,
  provider: settings.provider,
});
const limits = { ...settings, contextLength: Math.min(settings.contextLength, manifest.contextLength) };
const served = settings.judge && manifest.kind === 'decoder' ? judgeManifest(manifest) : manifest;
const engine = buildEngine();

const loop = new EngineLoop(engine, {
  onEvents: (events) => post({ type: 'events', events }, transfers(events)),
  // Uncaught, so that the thread ends and its owner hears of it.
  onFailure: (error) => queueMicrotask(() => throwError(error)),
});

port.on('message', (message: ToThread) => {
  switch (message.type) {
    case 'vocabulary':
      if (engine instanceof DecoderEngine) engine.grammars = new GrammarCache(message.vocabulary);
      break;
    case 'generate':
      if (engine instanceof DecoderEngine) engine.generate(message.request);
      loop.wake();
      break;
    case 'encode':
      if (engine instanceof EncoderEngine) engine.encode(unpackEncodeRequest(message.request));
      loop.wake();
      break;
    case 'cancel':
      engine.cancel(message.id, message.choice);
      loop.wake();
      break;
    case 'counters':
      post({ type: 'counters', ask: message.ask, counters: engine.counters() });
      break;
    case 'close':
      void loop
        .close()
        .then(() => session.close())
        .then(() => port.close());
      break;
    default:
      message satisfies never;
  }
});
post({ type: 'ready', manifest: served });

function buildEngine(): DecoderEngine | EncoderEngine {
  if (manifest.kind === 'encoder') return new EncoderEngine(new OnnxEncoderRunner(session, manifest), limits);
  const decoder = new OnnxDecoderRunner(session, manifest);
  if (!settings.judge || served.kind === 'decoder') return new DecoderEngine(decoder, limits);
  const judge = {
    runner: decoder,
    shape: served,
    answers: settings.judge,
    chunkTokens: limits.maxBatchTokens,
  };
  return new EncoderEngine(new JudgeRunner(judge), limits);
}

function post(message: FromThread, transfer: ArrayBuffer[] = []): void {
  port.postMessage(message, transfer);
}

/** The arrays of encoded rows are the events' own, and need not be copied. */
function transfers(events: readonly EngineEvent[]): ArrayBuffer[] {
  return events.flatMap((event) => (event.type === 'encoded' ? [event.rows.buffer as ArrayBuffer] : []));
}

function throwError(error: unknown): never {
  throw error;
}
