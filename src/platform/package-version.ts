import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { packagePath } from './package-root.js';

/** The version in this package's package.json. */
export function packageVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(packagePath('package.json'), 'utf8'));
  return z.object({ version: z.string() }).parse(manifest).version;
}
