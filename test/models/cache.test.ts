import { EventEmitter, once } from 'node:events';
import { mkdir, readdir, readFile, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { buildAside, compiledFolder, downloadFolder } from '../../src/models/cache.js';
import { temporaryFolder } from './temporary-folder.js';

test('a compiled folder is named by its source, its weights and the format of its manifest', () => {
  const options = { cacheDir: '/cache', checkpointSha256: 'a'.repeat(64), weights: 'int8' } as const;
  const folder = compiledFolder(options);
  expect(folder).toBe(compiledFolder({ ...options }));
  expect(dirname(folder)).toBe(join('/cache', 'compiled'));
  const others = [
    compiledFolder({ ...options, weights: 'float32' }),
    compiledFolder({ ...options, checkpointSha256: 'b'.repeat(64) }),
    downloadFolder({ cacheDir: '/cache', key: 'a'.repeat(64) }),
  ];
  expect(new Set([folder, ...others]).size).toBe(4);
});

test('a folder is there only when it is whole', async () => {
  const folder = join(await temporaryFolder(), 'deep', 'made');
  await buildAside(folder, async (aside) => {
    await writeFile(join(aside, 'part'), 'whole');
    expect(dirname(aside)).toBe(dirname(folder));
    expect(await readdir(dirname(folder))).not.toContain('made');
  });
  expect(await readFile(join(folder, 'part'), 'utf8')).toBe('whole');
  expect(await readdir(dirname(folder))).toEqual(['made']);
});

test('a folder that is there is not built again', async () => {
  const folder = join(await temporaryFolder(), 'made');
  await mkdir(folder);
  await buildAside(folder, () => Promise.reject(new Error('built again')));
  expect(await readdir(folder)).toEqual([]);
});

test('a build that fails leaves nothing and says why', async () => {
  const parent = await temporaryFolder();
  const building = buildAside(join(parent, 'made'), async (aside) => {
    await writeFile(join(aside, 'part'), 'half');
    throw new Error('no more');
  });
  await expect(building).rejects.toThrow('no more');
  expect(await readdir(parent)).toEqual([]);
});

test('of two that build the same, the first to finish wins and both find its work', async () => {
  const folder = join(await temporaryFolder(), 'made');
  const arrivals = new EventEmitter();
  const bothArrived = once(arrivals, 'both');
  let begun = 0;
  const build = (name: string) =>
    buildAside(folder, async (aside) => {
      await writeFile(join(aside, 'by'), name);
      begun += 1;
      if (begun === 2) arrivals.emit('both');
      await bothArrived;
    });
  await Promise.all([build('one'), build('other')]);
  expect(['one', 'other']).toContain(await readFile(join(folder, 'by'), 'utf8'));
  expect(await readdir(dirname(folder))).toEqual(['made']);
});

test('what a dead builder left is removed, and what a living one holds is not', async () => {
  const parent = await temporaryFolder();
  await buildAside(join(parent, 'first'), async (living) => {
    const dead = join(parent, '.aside-second-dead');
    await mkdir(dead);
    await writeFile(join(dead, 'part'), 'half');
    const longAgo = new Date(Date.now() - 3_600_000);
    await utimes(dead, longAgo, longAgo);
    await buildAside(join(parent, 'second'), async () => {});
    expect((await readdir(parent)).sort()).toEqual(['second', living.slice(parent.length + 1)].sort());
  });
  expect((await readdir(parent)).sort()).toEqual(['first', 'second']);
});
