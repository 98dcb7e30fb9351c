import { lstat, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { unpackZip } from '../../../src/models/sources/unpack-zip.js';
import { temporaryFolder } from '../temporary-folder.js';
import { writeZip, type ZipEntry } from './write-zip.js';

const { signal } = new AbortController();

async function unpacked(entries: readonly ZipEntry[], path: string) {
  const home = await temporaryFolder();
  const archive = join(home, 'a.zip');
  await writeZip(archive, entries);
  const folder = join(home, 'out');
  return { folder, home, written: await unpackZip({ archive, path, folder, signal }) };
}

const model: readonly ZipEntry[] = [
  { name: 'pkg/model/config.json', contents: '{}' },
  { name: 'pkg/model/sub/a.txt', contents: 'a'.repeat(10_000) },
  { name: 'pkg/model.py', contents: 'code' },
  { name: 'pkg/modelled/b.txt', contents: 'b' },
];

test('a folder is unpacked without its path and without its neighbours', async () => {
  const { folder, written } = await unpacked(model, 'pkg/model');
  expect(written).toBe(2);
  expect((await readdir(folder, { recursive: true })).sort()).toEqual(['config.json', 'sub', 'sub/a.txt']);
  expect(await readFile(join(folder, 'sub/a.txt'), 'utf8')).toBe('a'.repeat(10_000));
});

test('a file is unpacked under its name', async () => {
  const { folder, written } = await unpacked(model, 'pkg/model.py');
  expect(written).toBe(1);
  expect(await readdir(folder)).toEqual(['model.py']);
});

test('an empty path is everything', async () => {
  expect((await unpacked(model, '')).written).toBe(4);
});

test('a path that is not there is nothing', async () => {
  expect((await unpacked(model, 'pkg/other')).written).toBe(0);
});

for (const name of ['pkg/../../evil', '../evil', '/evil', 'pkg/model/../../../evil', 'C:/evil']) {
  test(`an entry named ${name} is refused and writes nothing outside`, async () => {
    const home = await temporaryFolder();
    await writeZip(join(home, 'a.zip'), [{ name, contents: 'evil' }]);
    const folder = join(home, 'deep', 'out');
    await expect(unpackZip({ archive: join(home, 'a.zip'), path: '', folder, signal })).rejects.toThrow(
      /relative path|absolute path|leads out/,
    );
    expect((await readdir(home, { recursive: true })).filter((path) => path.includes('evil'))).toEqual([]);
  });
}

test('a link becomes a plain file', async () => {
  const { folder } = await unpacked([{ name: 'link', contents: '/etc/passwd', mode: 0o120777 }], '');
  const stats = await lstat(join(folder, 'link'));
  expect(stats.isFile()).toBe(true);
});

test('two entries of one name are refused', async () => {
  const twice = { name: 'a', contents: 'a' };
  await expect(unpacked([twice, twice], '')).rejects.toThrow(/EEXIST/);
});

test('something that is no archive is refused', async () => {
  const home = await temporaryFolder();
  await writeFile(join(home, 'a.zip'), 'not a zip file at all, but long enough to look for its end');
  await expect(unpackZip({ archive: join(home, 'a.zip'), path: '', folder: home, signal })).rejects.toThrow();
});

test('an abort stops before the next entry', async () => {
  const home = await temporaryFolder();
  await writeZip(join(home, 'a.zip'), model);
  const aborted = AbortSignal.abort(new Error('enough'));
  const unpacking = unpackZip({ archive: join(home, 'a.zip'), path: '', folder: home, signal: aborted });
  await expect(unpacking).rejects.toThrow('enough');
  expect(await readdir(home)).toEqual(['a.zip']);
});
