import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DecoderEngine } from '../../src/engine/decoder-engine.js';
import { OnnxDecoderRunner } from '../../src/engine/onnx-decoder-runner.js';
import { OnnxSession } from '../../src/engine/onnx-session.js';
import type { GenerateRequest } from '../../src/engine/request.js';
import { compiledFiles, type DecoderManifest } from '../../src/models/manifest.js';
import { Tokenizer } from '../../src/worker/tokenizer.js';
import { drain, generateRequest, greedy } from '../engine/support/requests.js';
import { prepareDefaultModels } from '../support/default-models.js';

const subjects = ['rivers', 'bread', 'the moon', 'a clock', 'whales', 'paper', 'glass', 'chess'];
const forms = [
  'Explain {} to a child.',
  'Write the first line of a poem about {}.',
  'What is the history of {}, in short, and why does it matter to anybody today?',
  'List three facts: {}',
  '{}?',
  'Someone told me that nobody knows anything about {} any more. Is that so? Answer at length, and give examples.',
  'def describe(subject="{}"):\n    """',
  'The best book about {} is',
];
const prompts = forms.flatMap((form) => subjects.map((subject) => form.replace('{}', subject)));
const drawn = 24;
/** A beginning of some chunks and a part. */
const instructions = Array.from(
  { length: 24 },
  (_, index) => `Rule ${index + 1}: speak of ${subjects[index % 8]} in plain words.`,
).join('\n');

const defaults = await prepareDefaultModels();

describe.skipIf(!defaults.available)('the default chat model', { timeout: 300_000 }, () => {
  let runner: OnnxDecoderRunner;
  let tokens: Int32Array[];
  let beginning: Int32Array;
  beforeAll(async () => {
    if (!defaults.available) return;
    const { folder, manifest } = defaults.models.get('SmolLM2-135M-Instruct')!;
    const session = await OnnxSession.open(join(folder, compiledFiles.graph), {
      threads: 2,
      spinning: false,
    });
    runner = new OnnxDecoderRunner(session, manifest as DecoderManifest);
    const tokenizer = await Tokenizer.load(folder);
    beginning = Int32Array.from(await tokenizer.encode(instructions));
    tokens = await Promise.all(
      prompts.map(async (prompt) => Int32Array.from(await tokenizer.encode(prompt))),
    );
  });
  afterAll(() => runner?.close());

  const open = (prefixBytes = 0) =>
    new DecoderEngine(runner, {
      maxSequences: 32,
      contextLength: 2048,
      kvBytes: 2 ** 30,
      maxBatchTokens: 256,
      chunkTokens: 128,
      prefixBytes,
    });

  interface How extends Partial<GenerateRequest> {
    readonly engine?: DecoderEngine;
    readonly promptOf?: (index: number) => Int32Array;
  }

  /** What is drawn for some of the prompts, all at once: greedily, unless it is said how. */
  async function draw(indexes: readonly number[], how: How = {}): Promise<Map<string, number[]>> {
    const { engine = open(), promptOf = (index) => tokens[index]!, ...fields } = how;
    const texts = new Map(indexes.map((index) => [String(index), [] as number[]]));
    for (const index of indexes) {
      const request = { prompt: promptOf(index), maxTokens: drawn, ...fields };
      engine.generate(generateRequest(String(index), request));
    }
    for (const event of await drain(engine)) {
      if (event.type === 'failed') throw new Error(event.reason);
      if (event.type === 'token') texts.get(event.id)!.push(event.token);
    }
    return texts;
  }

  it('draws the same whether the beginning of a prompt was read for it or for an earlier one', async () => {
    const indexes = [3, 12, 25, 34];
    const promptOf = (index: number) => Int32Array.of(...beginning, ...tokens[index]!);
    const engine = open(2 ** 28);
    await draw([0], { engine, promptOf });
    const restored = await draw(indexes, { engine, promptOf });
    expect(engine.counters().cachedTokens).toBe(indexes.length * 128 * Math.floor(beginning.length / 128));
    for (const index of indexes) {
      const read = await draw([index], { promptOf });
      expect(restored.get(String(index)), prompts[index]).toEqual(read.get(String(index)));
    }
  });

  it(`draws for each of ${prompts.length} prompts alone what it draws among 31 others`, async () => {
    const together = await draw(prompts.map((_, index) => index));
    for (const index of prompts.keys()) {
      const alone = await draw([index]);
      expect(alone.get(String(index)), prompts[index]).toEqual(together.get(String(index)));
    }
  });

  it.each([
    ['greedily', greedy, [0, 18, 36, 54]],
    ['by a seed', { ...greedy, temperature: 0.7, topK: 40, topP: 0.9, seed: 11 }, [9, 27, 45, 63]],
  ])('draws %s, several tokens to a step, what it draws one by one', async (_how, sampling, indexes) => {
    const together = await draw(indexes, { maxTokens: 100, sampling });
    let accepted = 0;
    for (const index of indexes) {
      const engine = open();
      const alone = await draw([index], { engine, maxTokens: 100, sampling });
      expect(alone.get(String(index)), prompts[index]).toEqual(together.get(String(index)));
      accepted += engine.counters().acceptedDraftTokens;
    }
    expect(accepted).toBeGreaterThan(20);
  });
});
