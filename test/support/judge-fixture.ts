import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const fixture = fileURLToPath(new URL('../fixtures/decoder/qwen3-qknorm', import.meta.url));

/** Makes a causal reranker in `folder`: the Qwen3 fixture, in whose vocabulary two tokens become `yes` and `no`. */
export async function writeJudgeFixture(folder: string): Promise<void> {
  await cp(fixture, folder, { recursive: true });
  const path = join(folder, 'tokenizer.json');
  const tokenizer = JSON.parse(await readFile(path, 'utf8'));
  const { model } = tokenizer;
  // The last two merges make the last two tokens, of which no other is made.
  model.merges = model.merges.slice(0, -2);
  const tokens = Object.entries<number>(model.vocab).sort(([, a], [, b]) => a - b);
  for (const [index, word] of ['yes', 'no'].entries()) {
    const [token, id] = tokens.at(-1 - index)!;
    delete model.vocab[token];
    model.vocab[word] = id;
  }
  // A piece that is in the vocabulary is then a token without merges that lead to it.
  model.ignore_merges = true;
  await writeFile(path, JSON.stringify(tokenizer));
}
