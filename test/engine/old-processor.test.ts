import { execFile, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { compileFixture } from './support/compiled-fixture.js';

const run = promisify(execFile);
const emulator = 'qemu-x86_64';
const hasEmulator = process.arch === 'x64' && spawnSync(emulator, ['--version']).status === 0;
const dist = new URL('../../dist', import.meta.url).href;
const script = fileURLToPath(new URL('support/last-logits.mjs', import.meta.url));
const prompt = '1,85,91,293,20,33,400,7,9,12,40,77';

/**
 * The logits behind each third of the prompt, the last of them decoded, of Node.js started by `command`; and those behind
 * the last third decoded at once.
 */
async function logitsOf(folder: string, ...command: string[]): Promise<number[][]> {
  const [program, ...before] = [...command, process.execPath];
  const { stdout } = await run(program!, [...before, script, dist, folder, prompt], { maxBuffer: 2 ** 24 });
  return JSON.parse(stdout);
}

// Integer products differ most between processors: without VNNI a pair of them may overflow 16 bits.
describe.skipIf(!hasEmulator)('a processor that has AVX2 and nothing newer', () => {
  it.each(['llama-tied', 'qwen3-qknorm'])(
    'computes %s in int8 as this one does',
    { timeout: 240_000 },
    async (name) => {
      const { folder, remove } = await compileFixture(`decoder/${name}`, 'int8');
      onTestFinished(remove);
      const here = await logitsOf(folder);
      const there = await logitsOf(folder, emulator, '-cpu', 'Haswell');
      for (const [third, logits] of here.entries()) {
        const difference = there[third]!.map((logit, at) => logit - logits[at]!);
        expect(Math.hypot(...difference) / Math.hypot(...logits), `third ${third}`).toBeLessThan(0.05);
      }
      for (const [, , oneByOne, atOnce] of [here, there]) expect(atOnce).toEqual(oneByOne);
    },
  );
});
