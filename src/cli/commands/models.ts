import type { Catalogue, CatalogueModel } from '../../models/catalogue.js';
import { loadCatalogue } from '../../models/catalogue-file.js';
import type { WeightFormat } from '../../models/manifest.js';
import { findPreparedModel, obtainModel } from '../../models/prepare-model.js';
import { sourceName } from '../../models/sources/obtain.js';
import type { Config } from '../../platform/config.js';
import type { Terminal } from '../client/terminal.js';
import { forEachModel, prepareModels } from '../prepare-models.js';
import { formatTable } from '../table.js';

interface Context {
  readonly config: Config;
  readonly terminal: Terminal;
  readonly json: boolean;
  readonly signal: AbortSignal;
}

/** `headrace models list`. */
export async function runListModels({ config, terminal, json }: Omit<Context, 'signal'>): Promise<void> {
  const { models } = await loadCatalogue(config.modelsFile);
  const { modelsFile: catalogueFile, cacheDir, hubUrl } = config;
  const rows = await Promise.all(
    models.map(async (entry) => {
      const prepared = await findPreparedModel({ entry, catalogueFile, cacheDir, hubUrl });
      return {
        id: entry.id,
        task: entry.task,
        weights: entry.weights,
        contextLength: entry.contextLength ?? prepared?.manifest.contextLength ?? null,
        sources: entry.sources.map(sourceName),
        folder: prepared?.folder ?? null,
      };
    }),
  );
  print(terminal, json, rows, ['id', 'task', 'weights', 'context', 'compiled', 'sources'], (row) => [
    row.id,
    row.task,
    row.weights,
    String(row.contextLength ?? ''),
    row.folder === null ? 'no' : 'yes',
    row.sources.join(', '),
  ]);
}

/** `headrace models pull`: fetches the files of models. Nothing is compiled. */
export async function runPullModels(ids: readonly string[], context: Context): Promise<void> {
  const { config, terminal, json, signal } = context;
  const models = select(await loadCatalogue(config.modelsFile), ids);
  const obtained = await forEachModel({ config, models, terminal, signal }, obtainModel);
  const rows = obtained.map(({ source, path, sha256 }, index) => ({
    id: models[index]!.id,
    source: sourceName(source),
    path,
    sha256,
  }));
  print(terminal, json, rows, ['id', 'source', 'path'], ({ id, source, path }) => [id, source, path]);
}

/** `headrace models compile`: makes models ready to run, with other weights than the catalogue says if so told. */
export async function runCompileModels(
  { ids, weights }: { ids: readonly string[]; weights?: WeightFormat | undefined },
  context: Context,
): Promise<void> {
  const { config, terminal, json, signal } = context;
  const selected = select(await loadCatalogue(config.modelsFile), ids);
  const models = selected.map((model) => ({ ...model, weights: weights ?? model.weights }));
  const prepared = await prepareModels({ config, models, terminal, signal });
  const rows = prepared.map(({ folder, manifest }, index) => ({
    id: models[index]!.id,
    weights: manifest.weights,
    folder,
  }));
  print(terminal, json, rows, ['id', 'weights', 'folder'], ({ id, weights, folder }) => [
    id,
    weights,
    folder,
  ]);
}

/** @throws Error naming the first id that is not in the catalogue. */
function select({ models }: Catalogue, ids: readonly string[]): readonly CatalogueModel[] {
  if (ids.length === 0) return models;
  return ids.map((id) => {
    const model = models.find((candidate) => candidate.id === id);
    if (model !== undefined) return model;
    throw new Error(
      `"${id}" is not in the catalogue, which lists ${models.map((each) => each.id).join(', ')}.`,
    );
  });
}

function print<Row>(
  { stdout }: Terminal,
  json: boolean,
  rows: readonly Row[],
  head: readonly string[],
  toCells: (row: Row) => string[],
): void {
  stdout.write(`${json ? JSON.stringify(rows, null, 2) : formatTable(head, rows.map(toCells))}\n`);
}
