import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../temporary-folder.js';

/**
 * An executable that takes the place of Python. `script` is JavaScript; it finds the arguments in `args` and the
 * folder that pip is to download to in `dest`.
 */
export async function fakePython(script: string): Promise<string> {
  const path = join(await temporaryFolder(), 'python');
  await writeFile(
    path,
    [
      `#!${process.execPath}`,
      'const args = process.argv.slice(2);',
      "const dest = args[args.indexOf('--dest') + 1];",
      "const fs = require('node:fs');",
      script,
    ].join('\n'),
  );
  await chmod(path, 0o755);
  return path;
}
