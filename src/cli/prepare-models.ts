import type { CatalogueModel } from '../models/catalogue.js';
import { type PreparedModel, type PrepareOptions, prepareModel } from '../models/prepare-model.js';
import type { Config } from '../platform/config.js';
import { measureStates } from '../worker/measure-states.js';
import type { Terminal } from './client/terminal.js';
import { createProgress } from './progress.js';

export interface PrepareModelsOptions {
  readonly config: Pick<Config, 'modelsFile' | 'cacheDir' | 'hubUrl' | 'hubToken' | 'python'>;
  readonly models: readonly CatalogueModel[];
  readonly terminal: Terminal;
  readonly signal: AbortSignal;
}

/** Makes models ready to run, one after the other, and shows how far that is. What is ready is not mentioned. */
export async function prepareModels(options: PrepareModelsOptions): Promise<PreparedModel[]> {
  return await forEachModel(options, prepareModel);
}

/** Runs `work` on one model after the other and shows the progress that it tells of. */
export async function forEachModel<T>(
  { config, models, terminal, signal }: PrepareModelsOptions,
  work: (options: PrepareOptions) => Promise<T>,
): Promise<T[]> {
  const progress = createProgress(terminal);
  const { modelsFile: catalogueFile, cacheDir, hubUrl, hubToken, python } = config;
  const results: T[] = [];
  try {
    for (const entry of models) {
      const onProgress: PrepareOptions['onProgress'] = ({ stage, share }) =>
        progress.update(`${entry.id}: ${stage}`, share);
      const place = { catalogueFile, cacheDir, hubUrl, hubToken, python };
      results.push(await work({ entry, ...place, measureStates, onProgress, signal }));
      progress.end();
    }
  } finally {
    progress.end();
  }
  return results;
}
