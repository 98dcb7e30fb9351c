import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * The absolute path of a file that is part of the package, wherever this module runs from (`src` or `dist`).
 * @throws Error when there is no package.json above this module.
 */
export function packagePath(...segments: string[]): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder);
    if (parent === folder) throw new Error('No package.json above the running code. This is a bug.');
    folder = parent;
  }
  return join(folder, ...segments);
}
