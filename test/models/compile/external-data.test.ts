import { existsSync } from 'node:fs';
import { readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ExternalData } from '../../../src/models/compile/external-data.js';
import { temporaryFolder } from '../temporary-folder.js';

test('each tensor begins on a page, and its extent is where its bytes are', async () => {
  const path = join(await temporaryFolder(), 'weights');
  const data = await ExternalData.create(path);
  const tensors = [3, 4096, 5000, 1].map((length, index) => new Uint8Array(length).fill(index + 1));
  const extents = [];
  for (const tensor of tensors) extents.push(await data.append(tensor));
  await data.close();

  expect(extents.map(({ offset }) => offset)).toEqual([0, 4096, 8192, 16384]);
  const file = await readFile(path);
  for (const [index, { offset, length }] of extents.entries()) {
    expect(new Uint8Array(file.subarray(offset, offset + length))).toEqual(tensors[index]);
  }
  expect(file).toHaveLength(16385);
});

test('a file of the same name is replaced', async () => {
  const path = join(await temporaryFolder(), 'weights');
  for (const length of [9000, 10]) {
    const data = await ExternalData.create(path);
    await data.append(new Uint8Array(length));
    await data.close();
  }
  expect(await readFile(path)).toHaveLength(10);
});

test.skipIf(!existsSync('/dev/full'))('a full disk is told with the file that did not fit', async () => {
  const path = join(await temporaryFolder(), 'weights');
  // A device of Linux on which there is no space.
  await symlink('/dev/full', path);
  const data = await ExternalData.create(path);
  await expect(data.append(new Uint8Array(10))).rejects.toThrow(
    new RegExp(`^${path}: ENOSPC: no space left on device, write, after 0 bytes$`),
  );
  // It cannot be flushed either.
  await data.close().catch(() => {});
});
