import { cp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { type CatalogueModel, catalogueModelSchema } from '../../src/models/catalogue.js';
import { CheckpointError } from '../../src/models/compile/checkpoint.js';
import { makeModel } from '../../src/models/compile/make-model.js';
import { prepareModel } from '../../src/models/prepare-model.js';
import { measureStates } from '../../src/worker/measure-states.js';
import { fc } from '../support/property.js';
import { writePublishedEncoder } from '../support/published-encoder.js';
import { temporaryFolder } from './temporary-folder.js';

const fixtures = fileURLToPath(new URL('../fixtures/', import.meta.url));

/** A copy of a fixture: a folder, or a folder with one file. */
async function copyOf(name: string): Promise<string> {
  const path = join(await temporaryFolder(), name.split('/').at(-1)!);
  await cp(join(fixtures, name), path, { recursive: true });
  return path;
}

async function changeJson(path: string, change: (json: Record<string, object>) => unknown): Promise<void> {
  await writeFile(path, JSON.stringify(change(JSON.parse(await readFile(path, 'utf8')))));
}

const llama = 'decoder/llama-tied';
const bert = 'encoder/bert-cross-encoder';
const gguf = 'gguf/llama-tied-q8_0.gguf';

/** What is broken, how, and what is said of it: the file, and the reason. */
const broken: ReadonlyArray<[what: string, model: string, break_: (path: string) => Promise<void>, RegExp]> =
  [
    [
      'weights cut short',
      llama,
      async (path) => truncate(join(path, 'model.safetensors'), 9_000),
      /model\.safetensors: cut short: 9000 bytes of \d+/,
    ],
    [
      'weights without a header',
      bert,
      async (path) => writeFile(join(path, 'model.safetensors'), ''),
      /model\.safetensors: cut short/,
    ],
    [
      'a shape that the configuration does not have',
      llama,
      async (path) =>
        changeJson(join(path, 'config.json'), (config) => ({ ...config, hidden_size: 128, head_dim: 32 })),
      /model\.safetensors: tensor model\.embed_tokens\.weight is \[512,64\], but the configuration asks for \[512,128\]/,
    ],
    [
      'fewer layers of weights than the configuration has',
      llama,
      async (path) =>
        changeJson(join(path, 'config.json'), (config) => ({ ...config, num_hidden_layers: 9 })),
      /tensor model\.layers\.2\.self_attn\.q_proj\.weight is missing/,
    ],
    [
      'an architecture that is not known',
      llama,
      async (path) => changeJson(join(path, 'config.json'), (config) => ({ ...config, model_type: 'mamba' })),
      /config\.json: architecture "mamba" is not supported; supported are llama, mistral, qwen2, qwen3, bert, xlm-roberta/,
    ],
    [
      'a configuration that is not JSON',
      bert,
      async (path) => writeFile(join(path, 'config.json'), '{"model_type": "bert",'),
      /config\.json: not JSON/,
    ],
    [
      'a tokenizer that is not JSON',
      llama,
      async (path) => truncate(join(path, 'tokenizer.json'), 1_000),
      /tokenizer\.json: not JSON/,
    ],
    [
      'a tokenizer without its merges',
      llama,
      async (path) =>
        changeJson(join(path, 'tokenizer.json'), ({ model, ...rest }) => {
          const { merges: _, ...kept } = model as { merges: unknown };
          return { ...rest, model: kept };
        }),
      /tokenizer\.json: model: merges: are missing/,
    ],
    ['no tokenizer', llama, async (path) => rm(join(path, 'tokenizer.json')), /tokenizer\.json: is missing/],
    [
      'a GGUF file cut short',
      gguf,
      async (path) => truncate(path, 60_000),
      /ends at byte \d+, but the file at 60000/,
    ],
    [
      'something else under the name of a GGUF file',
      gguf,
      async (path) => writeFile(path, 'not a model'),
      /llama-tied-q8_0\.gguf: not a valid gguf file/,
    ],
  ];

const entryOf = (path: string): CatalogueModel =>
  catalogueModelSchema.parse({ id: 'a-model', task: 'chat', sources: [{ from: 'file', path }] });

describe.each(broken)('%s', (_, model, break_, message) => {
  test('is refused with the file and the reason, and leaves nothing in the cache', async () => {
    const path = await copyOf(model);
    await break_(path);
    const cacheDir = await temporaryFolder();
    const catalogueFile = join(cacheDir, 'models.json');
    const { signal } = new AbortController();
    const prepared = prepareModel({
      entry: entryOf(path),
      ...{ catalogueFile, cacheDir, hubUrl: 'http://localhost:1', python: 'python3', signal },
      measureStates,
    });
    await expect(prepared).rejects.toThrow(CheckpointError);
    await expect(prepared).rejects.toThrow(message);
    await expect(prepared).rejects.toThrow(path);
    expect(await readdir(cacheDir, { recursive: true })).toEqual(['compiled']);
  });
});

describe('files with some bytes changed, or cut short', () => {
  /** Where bytes are changed: mostly in the header, which is what a reader believes. */
  const damage = fc.record({
    flips: fc.array(fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.nat(255)), { maxLength: 4 }),
    kept: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined }),
  });

  /** Makes a model of each damaged form of one file: it comes out, or is refused as what it is. */
  async function survive(source: string, file: string, headerBytes: number): Promise<void> {
    const whole = await readFile(file);
    await fc.assert(
      fc.asyncProperty(damage, async ({ flips, kept }) => {
        const bytes = Buffer.from(whole);
        for (const [place, value] of flips) bytes[Math.floor(place * (headerBytes - 1))] = value;
        await writeFile(file, bytes.subarray(0, Math.ceil((kept ?? 1) * bytes.length)));
        const folder = await temporaryFolder();
        const outcome = await makeModel({ source, weights: 'float32', folder, measureStates }).catch(
          (error: unknown) => error,
        );
        if (outcome instanceof Error) {
          expect(outcome).toBeInstanceOf(CheckpointError);
          expect(outcome.message).toContain(source);
        }
      }),
      { numRuns: 150, seed: 20 },
    );
  }

  test('safetensors are read or refused', { timeout: 120_000 }, async () => {
    const source = await copyOf(bert);
    const file = join(source, 'model.safetensors');
    const header = 8 + Number((await readFile(file)).readBigUInt64LE(0));
    await survive(source, file, header);
  });

  test('GGUF is read or refused', { timeout: 120_000 }, async () => {
    const source = await copyOf(gguf);
    await survive(source, source, 13_500);
  });

  test('a published graph is read or refused', { timeout: 120_000 }, async () => {
    const source = await temporaryFolder();
    await writePublishedEncoder('bert-cross-encoder', source);
    const file = join(source, 'onnx/model.onnx');
    await survive(source, file, (await readFile(file)).length);
  });
});
