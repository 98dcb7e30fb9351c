import { fileURLToPath } from 'node:url';
import { loadCatalogue } from '../../src/models/catalogue-file.js';
import { type PreparedModel, prepareModel } from '../../src/models/prepare-model.js';
import { SourceError } from '../../src/models/sources/obtain.js';
import { loadConfig } from '../../src/platform/config.js';
import { measureStates } from '../../src/worker/measure-states.js';

export const defaultCatalogueFile = fileURLToPath(new URL('../../headrace.models.json', import.meta.url));

/** The default models by their ids, compiled, or the reason why no source has them. */
export type DefaultModels =
  | { available: true; models: ReadonlyMap<string, PreparedModel> }
  | { available: false; reason: string };

/** Obtains and compiles the default models in the cache that the service uses too. Says so when they cannot be had. */
export async function prepareDefaultModels(): Promise<DefaultModels> {
  const catalogueFile = defaultCatalogueFile;
  const config = loadConfig();
  const models = new Map<string, PreparedModel>();
  try {
    for (const entry of (await loadCatalogue(catalogueFile)).models) {
      const signal = new AbortController().signal;
      models.set(entry.id, await prepareModel({ ...config, entry, catalogueFile, measureStates, signal }));
    }
    return { available: true, models };
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    console.log(`The tests of the default models are skipped. ${error.message}`);
    return { available: false, reason: error.message };
  }
}
