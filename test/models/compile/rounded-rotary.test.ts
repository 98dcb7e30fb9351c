import { readFile } from 'node:fs/promises';
import { expect, test, vi } from 'vitest';
import type { rotaryCaches } from '../../../src/models/compile/rotary.js';
import type { DecoderManifest } from '../../../src/models/manifest.js';
import { compiled, extend, openFixture } from './compiled-fixture.js';

/** The nearest number of 8 significant bits. */
function toBfloat16(value: number): number {
  const bits = new Uint32Array(Float32Array.of(value).buffer);
  const even = (bits[0]! >>> 16) & 1;
  bits[0] = ((bits[0]! + 0x7fff + even) & 0xffff0000) >>> 0;
  return new Float32Array(bits.buffer)[0]!;
}

// The reference of this fixture was computed by a model that had been cast to bfloat16 and back as a whole, its
// rotary frequencies included. A model that is loaded from its files has them in float32, as it has here; with the
// rounded ones, the rest of the graph can be held to the reference.
vi.mock('../../../src/models/compile/rotary.js', () => ({
  rotaryCaches: (...[rope, headSize, positions]: Parameters<typeof rotaryCaches>) => {
    const half = headSize / 2;
    const angle = (at: number) =>
      Math.floor(at / half) * toBfloat16(rope.theta ** ((-2 * (at % half)) / headSize));
    const length = positions * half;
    return {
      cosines: Float32Array.from({ length }, (_, at) => Math.cos(angle(at))),
      sines: Float32Array.from({ length }, (_, at) => Math.sin(angle(at))),
    };
  },
}));

test('qwen2 gives the logits of its reference, were its rotary frequencies rounded as there', async () => {
  const url = new URL('../../fixtures/decoder/qwen2-bias/expected.json', import.meta.url);
  const { cases } = JSON.parse(await readFile(url, 'utf8')) as {
    cases: { prompt_ids: number[]; last_logits: number[] }[];
  };
  const { session, manifest } = await compiled(await openFixture('decoder/qwen2-bias'), 'float32');
  const model = { session, shape: manifest as DecoderManifest };
  for (const { prompt_ids, last_logits } of cases.filter((one) => one.prompt_ids.length <= 64)) {
    const { logits } = await extend(model, prompt_ids);
    const worst = last_logits.reduce((most, value, at) => Math.max(most, Math.abs(value - logits[at]!)), 0);
    expect(worst).toBeLessThan(1e-3);
  }
});
