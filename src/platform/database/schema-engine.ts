import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { PrismaPg } from '@prisma/adapter-pg';
import {
  bindMigrationAwareSqlAdapterFactory,
  ColumnTypeEnum,
  type SqlDriverAdapter,
  type SqlMigrationAwareDriverAdapterFactory,
} from '@prisma/driver-adapter-utils';
import * as bindings from '@prisma/schema-engine-wasm/schema_engine_bg';
import pg from 'pg';

/** Nothing is managed outside of the schema file. */
export const noFilters = { externalTables: [], externalEnums: [] };

/** Postgres' numbers of its one-byte type `"char"`, which its catalogue uses, and of an array of it. */
const charType = 18;
const charArrayType = 1002;

/** The one global that the type packages for Node.js 20 leave out. */
declare const WebAssembly: {
  instantiate(
    module: Uint8Array,
    imports: Record<string, unknown>,
  ): Promise<{ instance: { exports: Record<string, () => void> } }>;
};

let loading: Promise<void> | undefined;

/**
 * Lends Prisma's schema engine, as WebAssembly in this process, to `work`: what `prisma migrate` runs, without the
 * native binary that the command would download.
 */
export async function withSchemaEngine<T>(
  url: string,
  work: (engine: bindings.SchemaEngine) => Promise<T>,
): Promise<T> {
  loading ??= load();
  await loading;
  const pool = new pg.Pool({ connectionString: url, connectionTimeoutMillis: 5_000 });
  // A broken idle connection without a listener would end the process; the next query reports it.
  pool.on('error', () => {});
  try {
    const adapter = bindMigrationAwareSqlAdapterFactory(knowingChar(pool));
    const engine = await bindings.SchemaEngine.new({ datamodels: undefined }, () => {}, adapter);
    try {
      return await work(engine);
    } finally {
      engine.free();
    }
  } finally {
    await pool.end();
  }
}

/**
 * The driver adapter refuses results with a column of the type `"char"`, which the engine needs to read the
 * catalogue. It knows arrays of them: so such a column passes through it as one, and is put right behind it.
 * It also cuts scripts at every semicolon, those of comments and functions included: they go to the server whole.
 */
function knowingChar(pool: pg.Pool): SqlMigrationAwareDriverAdapterFactory {
  const query = pool.query.bind(pool) as (...args: unknown[]) => Promise<pg.QueryResult>;
  const disguised = async (...args: unknown[]) => {
    const result = await query(...args);
    for (const field of result.fields) if (field.dataTypeID === charType) field.dataTypeID = charArrayType;
    return result;
  };
  const factory = new PrismaPg(Object.assign(pool, { query: disguised as typeof pool.query }));
  const revealed = async (adapter: SqlDriverAdapter) => {
    const queryRaw = adapter.queryRaw.bind(adapter);
    adapter.queryRaw = async (parameters) => {
      const result = await queryRaw(parameters);
      const columnTypes = result.columnTypes.map((type) =>
        type === ColumnTypeEnum.CharacterArray ? ColumnTypeEnum.Character : type,
      );
      return { ...result, columnTypes };
    };
    adapter.executeScript = async (script) => void (await query(script));
    return adapter;
  };
  return {
    provider: factory.provider,
    adapterName: factory.adapterName,
    connect: async () => revealed(await factory.connect()),
    connectToShadowDb: () => {
      throw new Error('Nothing here asks for a shadow database. This is a bug.');
    },
  };
}

/** The package's own entry imports the .wasm file as a module, which Node.js does not do without a flag. */
async function load(): Promise<void> {
  const script = createRequire(import.meta.url).resolve('@prisma/schema-engine-wasm/schema_engine_bg');
  const file = await readFile(join(dirname(script), 'schema_engine_bg.wasm'));
  const { instance } = await WebAssembly.instantiate(file, { './schema_engine_bg.js': { ...bindings } });
  bindings.__wbg_set_wasm(instance.exports);
  instance.exports.__wbindgen_start?.();
}
