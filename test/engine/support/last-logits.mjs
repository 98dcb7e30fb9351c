// node last-logits.mjs DIST FOLDER TOKENS: reads a prompt in two pieces, the second from the cache, then the last few
// tokens one by one, as they are when they are drawn; prints the logits behind each of the three, and those behind the
// last few when they are run at once.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

const [dist, folder, tokens] = process.argv.slice(2);
const { OnnxSession } = await import(`${dist}/engine/onnx-session.js`);
const { OnnxDecoderRunner } = await import(`${dist}/engine/onnx-decoder-runner.js`);
const { BatchBuilder } = await import(`${dist}/engine/batch.js`);
const { KvCache } = await import(`${dist}/engine/kv-cache.js`);

const shape = JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8'));
const session = await OnnxSession.open(join(folder, 'model.onnx'), { threads: 1 });
const runner = new OnnxDecoderRunner(session, shape);
const batches = new BatchBuilder();
const prompt = tokens.split(',').map(Number);
const third = Math.floor(prompt.length / 3);

/** Runs parts of the prompt, each behind those before it; the logits behind each. */
async function run(parts) {
  const cache = new KvCache({ shape, slots: 1, contextLength: 64, maxBytes: 2 ** 24 });
  const logits = [];
  for (const part of parts) {
    const cached = cache.length(0);
    cache.fit({ rows: 1, longest: cached + part.length, limit: 64 });
    const batch = batches.build([{ cached, tokens: part }]);
    const output = await runner.run({ ...batch, cache: cache.view(0, 1) });
    cache.advance(0, part.length);
    logits.push([...output.whole.logits]);
  }
  return logits;
}

const read = [prompt.slice(0, third), prompt.slice(third, 2 * third)];
const drawn = prompt.slice(2 * third);
const oneByOne = await run([...read, ...drawn.map((token) => [token])]);
const atOnce = await run([...read, drawn]);
console.log(JSON.stringify([oneByOne[0], oneByOne[1], oneByOne.at(-1), atOnce.at(-1)]));
await session.close();
