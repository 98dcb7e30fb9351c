// Generates the Prisma client without a network: the `prisma` command would download a schema engine that
// `generate` does not use, and a named engine binary stops the download.
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const manifest = createRequire(import.meta.url).resolve('prisma/package.json');
const cli = join(dirname(manifest), 'build', 'index.js');
const { status, error } = spawnSync(process.execPath, [cli, 'generate', '--no-hints'], {
  stdio: ['ignore', 'ignore', 'inherit'],
  env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, PRISMA_HIDE_UPDATE_MESSAGE: '1' },
});
if (error) throw error;
process.exit(status ?? 1);
