import { noFilters, withSchemaEngine } from './schema-engine.js';

/** What the engine prints for two schemas that are the same. */
const emptyScript = '-- This is an empty migration.';

/**
 * The SQL that takes the database to what the schema says; empty when it is there.
 * @param schema The text of schema.prisma.
 */
export async function diffFromSchema(url: string, schema: string): Promise<string> {
  const files = [{ path: 'schema.prisma', content: schema }];
  const { stdout } = await withSchemaEngine(url, (engine) =>
    engine.diff({
      from: { tag: 'schemaDatasource', files, configDir: '' },
      to: { tag: 'schemaDatamodel', files },
      script: true,
      exitCode: null,
      filters: noFilters,
    }),
  );
  const script = stdout?.trim() ?? '';
  return script === emptyScript ? '' : `${script}\n`;
}
