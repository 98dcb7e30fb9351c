import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DecoderEngine } from '../../src/engine/decoder-engine.js';
import { OnnxDecoderRunner } from '../../src/engine/onnx-decoder-runner.js';
import { OnnxSession } from '../../src/engine/onnx-session.js';
import type { EngineEvent, GenerateRequest } from '../../src/engine/request.js';
import { compiledFiles } from '../../src/models/manifest.js';
import { type CompiledFixture, compileFixture, readExpected } from './support/compiled-fixture.js';
import { alone, drain, generateRequest, greedy, prompt, tokensOf } from './support/requests.js';

interface Case {
  readonly prompt_ids: number[];
  readonly greedy_ids: number[];
}

for (const name of ['llama-tied', 'llama3-rope']) {
  describe(`decoder/${name} in float32`, () => {
    let fixture: CompiledFixture;
    let runner: OnnxDecoderRunner;
    let requests: GenerateRequest[];
    let expected: number[][];

    const build = (maxBatchTokens: number) =>
      new DecoderEngine(runner, {
        maxSequences: 8,
        contextLength: 512,
        kvBytes: 64 * 2 ** 20,
        maxBatchTokens,
        chunkTokens: maxBatchTokens,
        prefixBytes: 0,
      });

    beforeAll(async () => {
      fixture = await compileFixture(`decoder/${name}`, 'float32');
      if (fixture.manifest.kind !== 'decoder') throw new Error(`${name} is not a decoder`);
      const session = await OnnxSession.open(join(fixture.folder, compiledFiles.graph), { threads: 1 });
      runner = new OnnxDecoderRunner(session, fixture.manifest);
      const { cases } = await readExpected<{ cases: Case[] }>(`decoder/${name}`);
      requests = cases.map(({ prompt_ids, greedy_ids }, index) =>
        generateRequest(`case${index}`, {
          prompt: Int32Array.from(prompt_ids),
          maxTokens: greedy_ids.length,
        }),
      );
      expected = cases.map(({ greedy_ids }) => greedy_ids);
    });

    afterAll(async () => {
      await runner?.close();
      await fixture?.remove();
    });

    it('draws the tokens of the reference, one request at a time', async () => {
      const engine = build(512);
      for (const [index, request] of requests.entries()) {
        expect(await alone(engine, request)).toEqual(expected[index]);
      }
    });

    it('draws the tokens of the reference, all requests together', async () => {
      const engine = build(512);
      for (const request of requests) engine.generate(request);
      const events = await drain(engine);
      for (const [index, { id }] of requests.entries()) expect(tokensOf(events, id)).toEqual(expected[index]);
    });

    it('draws the tokens of the reference when prompts are read in small parts', async () => {
      const engine = build(7);
      for (const request of requests) engine.generate(request);
      const events = await drain(engine);
      for (const [index, { id }] of requests.entries()) expect(tokensOf(events, id)).toEqual(expected[index]);
    });

    it('draws for sixteen mixed requests that join and leave what each draws alone', async () => {
      const mixed = Array.from({ length: 16 }, (_, index) =>
        generateRequest(`mixed${index}`, {
          prompt: prompt(3 + ((index * 29) % 120), index + 1),
          maxTokens: 4 + ((index * 7) % 30),
          choices: index % 6 === 5 ? 2 : 1,
          priority: index % 4 === 3 ? 'batch' : 'interactive',
          sampling:
            index % 2 === 0 ? greedy : { ...greedy, temperature: 0.8, topK: 40, topP: 0.9, seed: index },
        }),
      );
      const engine = build(48);
      const events: EngineEvent[] = [];
      for (const request of mixed) {
        engine.generate(request);
        events.push(...(await engine.step()), ...(await engine.step()));
      }
      events.push(...(await drain(engine)));
      const solo = build(512);
      for (const request of mixed) {
        solo.generate(request);
        const own = await drain(solo);
        for (let choice = 0; choice < request.choices; choice++) {
          const single = tokensOf(own, request.id, choice);
          expect(single).toHaveLength(request.maxTokens);
          expect(tokensOf(events, request.id, choice), request.id).toEqual(single);
        }
      }
      expect(engine.counters()).toMatchObject({ running: 0, waiting: 0, kvBytesUsed: 0 });
    });
  });
}
