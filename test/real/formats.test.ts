import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Evaluation, evaluateFormats } from '../../src/cli/model-evaluate/evaluate-formats.js';
import { OnnxDecoderRunner } from '../../src/engine/onnx-decoder-runner.js';
import { OnnxSession } from '../../src/engine/onnx-session.js';
import { loadCatalogue } from '../../src/models/catalogue-file.js';
import { makeModel } from '../../src/models/compile/make-model.js';
import { compiledFiles, type DecoderManifest, weightFormats } from '../../src/models/manifest.js';
import { obtainModel } from '../../src/models/prepare-model.js';
import { loadConfig } from '../../src/platform/config.js';
import { packagePath } from '../../src/platform/package-root.js';
import { measureStates } from '../../src/worker/measure-states.js';
import { Tokenizer } from '../../src/worker/tokenizer.js';
import { defaultCatalogueFile, prepareDefaultModels } from '../support/default-models.js';
import { makeTempFolder, type TempFolder } from '../support/temp-folder.js';

const { available } = await prepareDefaultModels();

describe.skipIf(!available)('the formats of the default chat model', { timeout: 900_000 }, () => {
  let folder: TempFolder;
  const runners: OnnxDecoderRunner[] = [];
  let results: Evaluation[];

  beforeAll(async () => {
    folder = await makeTempFolder('formats');
    const config = loadConfig();
    const entry = (await loadCatalogue(defaultCatalogueFile)).models.find(({ task }) => task === 'chat')!;
    const { signal } = new AbortController();
    const place = { ...config, entry, catalogueFile: defaultCatalogueFile, measureStates, signal };
    const { path, sha256 } = await obtainModel(place);
    for (const weights of weightFormats) {
      const compiled = join(folder.path, weights);
      await mkdir(compiled);
      const manifest = await makeModel({ source: path, sha256, weights, folder: compiled, measureStates });
      const session = await OnnxSession.open(join(compiled, compiledFiles.graph), { threads: 2 });
      runners.push(new OnnxDecoderRunner(session, manifest as DecoderManifest));
    }
    const tokenizer = await Tokenizer.load(join(folder.path, weightFormats[0]));
    results = await evaluateFormats({
      runners,
      tokens: await tokenizer.encode(await readFile(packagePath('evaluation', 'english.txt'), 'utf8')),
      begin: new Int32Array(),
      windowTokens: 256,
      rows: 16,
      onProgress: () => {},
      signal,
    });
  }, 900_000);
  afterAll(async () => {
    for (const runner of runners) await runner.close();
    await folder?.remove();
  });

  it('are compared over at least 4,000 tokens of English', () => {
    expect(results[0]!.tokens).toBeGreaterThan(4_000);
    // A model that had understood nothing would be in the tens of thousands.
    expect(results[0]!.perplexity).toBeLessThan(40);
  });

  it.each([
    ['int8', 1, 0.02],
    ['int4', 2, 0.08],
  ])('%s has at most so much more perplexity than float32', (_, index, most) => {
    expect(results[index]!.perplexity / results[0]!.perplexity - 1).toBeLessThan(most);
    expect(results[index]!.top1).toBeGreaterThan(0.85);
  });
});
