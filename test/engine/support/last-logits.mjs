// node last-logits.mjs DIST FOLDER TOKENS: reads a prompt in two pieces, the second from the cache, and prints the logits.
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
const batches = new BatchBuilder(shape.heads / shape.kvHeads);
const cache = new KvCache({ shape, slots: 1, contextLength: 64, maxBytes: 2 ** 24 });
const prompt = tokens.split(',').map(Number);
const half = prompt.length >> 1;
let logits;
for (const part of [prompt.slice(0, half), prompt.slice(half)]) {
  const cached = cache.length(0);
  cache.fit({ rows: 1, longest: cached + part.length, limit: 64 });
  const batch = batches.build([{ cached, tokens: part }], cache.capacity);
  const output = await runner.run({ ...batch, past: cache.view(0, 1) });
  cache.append(output, part.length, [{ row: 0, outputRow: 0, tokens: part.length }]);
  logits = output.logits;
}
console.log(JSON.stringify([...logits]));
await session.close();
