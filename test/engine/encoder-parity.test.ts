import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EncoderEngine } from '../../src/engine/encoder-engine.js';
import { OnnxEncoderRunner } from '../../src/engine/onnx-encoder-runner.js';
import { OnnxSession } from '../../src/engine/onnx-session.js';
import type { EncodeRequest } from '../../src/engine/request.js';
import { compiledFiles } from '../../src/models/manifest.js';
import { type CompiledFixture, compileFixture, readExpected } from './support/compiled-fixture.js';
import { drain } from './support/requests.js';

interface Expected {
  readonly input_ids: number[][];
  readonly logits: number[];
}

for (const name of ['bert-cross-encoder', 'xlm-roberta-cross-encoder']) {
  describe(`encoder/${name} in float32`, () => {
    let fixture: CompiledFixture;
    let runner: OnnxEncoderRunner;
    let expected: Expected;
    let sequences: EncodeRequest['sequences'];

    beforeAll(async () => {
      fixture = await compileFixture(`encoder/${name}`, 'float32');
      const { manifest } = fixture;
      if (manifest.kind !== 'encoder') throw new Error(`${name} is not an encoder`);
      const session = await OnnxSession.open(join(fixture.folder, compiledFiles.graph), { threads: 1 });
      runner = new OnnxEncoderRunner(session, manifest);
      expected = await readExpected<Expected>(`encoder/${name}`);
      // The reference's tokenizer gives no token types, which to BERT is type 0 throughout.
      sequences = expected.input_ids.map((ids) => ({
        tokens: Int32Array.from(ids),
        ...(manifest.tokenTypes && { types: new Int32Array(ids.length) }),
      }));
    });

    afterAll(async () => {
      await runner?.close();
      await fixture?.remove();
    });

    it('gives the logits of the reference, batched with padding', async () => {
      const engine = new EncoderEngine(runner, { contextLength: 512, maxBatchTokens: 4096 });
      engine.encode({ id: 'a', sequences, priority: 'interactive' });
      const rows = await rowsOf(engine);
      expect(engine.counters().steps).toBeLessThan(sequences.length);
      for (const [index, logit] of expected.logits.entries()) expect(rows[index]).toBeCloseTo(logit, 3);
    });

    it('gives a sequence the same logit alone', async () => {
      const engine = new EncoderEngine(runner, { contextLength: 512, maxBatchTokens: 1 });
      engine.encode({ id: 'a', sequences, priority: 'interactive' });
      const rows = await rowsOf(engine);
      expect(engine.counters().steps).toBe(sequences.length);
      for (const [index, logit] of expected.logits.entries()) expect(rows[index]).toBeCloseTo(logit, 3);
    });
  });
}

async function rowsOf(engine: EncoderEngine): Promise<number[]> {
  const last = (await drain(engine)).at(-1);
  if (last?.type !== 'encoded') throw new Error(`expected rows, not ${JSON.stringify(last)}`);
  return [...last.rows];
}
