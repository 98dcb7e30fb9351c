import { chmod, lstat, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findPostgresBinaries } from '../../../src/platform/database/postgres-binaries.js';
import { makeTempFolder, type TempFolder } from '../../support/temp-folder.js';

let folder: TempFolder;
let packageDir: string;
let copyDir: string;

/** A package as npm unpacks it when it runs no install scripts: no links between libraries, no execute bits. */
beforeEach(async () => {
  folder = await makeTempFolder('binaries');
  packageDir = join(folder.path, 'package');
  copyDir = join(folder.path, 'copy');
  const files = {
    'package.json': JSON.stringify({ version: '1.2.3' }),
    'native/bin/postgres': 'a program',
    'native/bin/initdb': 'a program',
    'native/lib/libz.so.1.2': 'a library',
    'native/pg-symlinks.json': JSON.stringify([
      { source: 'native/lib/libz.so.1.2', target: 'native/lib/libz.so.1' },
    ]),
  };
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(packageDir, name)), { recursive: true });
    await writeFile(join(packageDir, name), text, { mode: 0o644 });
  }
});
afterEach(() => folder.remove());

async function expectRunnable(program: string): Promise<void> {
  expect((await stat(program)).mode & 0o555).toBe(0o555);
  const link = join(dirname(program), '..', 'lib', 'libz.so.1');
  expect((await lstat(link)).isSymbolicLink()).toBe(true);
  expect(await readFile(link, 'utf8')).toBe('a library');
}

test('what an install script would have done is done where the package is', async () => {
  const { postgres, initdb } = await findPostgresBinaries({ owner: {}, copyDir, packageDir });
  expect(postgres.startsWith(packageDir)).toBe(true);
  await expectRunnable(postgres);
  await expectRunnable(initdb);
});

test.skipIf(process.platform === 'win32')(
  'a package out of the owner’s reach is copied into it, once',
  async () => {
    const owner = { uid: 65_534, gid: 65_534 };
    await chmod(packageDir, 0o700);
    const { postgres } = await findPostgresBinaries({ owner, copyDir, packageDir });
    expect(postgres).toBe(join(copyDir, 'postgres-1.2.3', 'native', 'bin', 'postgres'));
    await expectRunnable(postgres);
    await writeFile(postgres, 'the copy of before');
    await findPostgresBinaries({ owner, copyDir, packageDir });
    expect(await readFile(postgres, 'utf8')).toBe('the copy of before');
  },
);
