import { truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { CheckpointError } from '../../../../src/models/compile/checkpoint.js';
import { SafetensorsFile } from '../../../../src/models/compile/safetensors/safetensors-file.js';
import { temporaryFolder } from '../../temporary-folder.js';
import { writeSafetensors } from './write-safetensors.js';

const pair = { dtype: 'F32', shape: [2], data_offsets: [0, 8] } as const;
const pairBytes = new Uint8Array(new Float32Array([1.5, -2]).buffer);

async function written(...[header, data]: [Parameters<typeof writeSafetensors>[1], Uint8Array]) {
  const path = join(await temporaryFolder(), 'model.safetensors');
  await writeSafetensors(path, header, data);
  return path;
}

async function opened(path: string): Promise<SafetensorsFile> {
  const file = await SafetensorsFile.open(path);
  onTestFinished(() => file.close());
  return file;
}

test('float32 values are read as they are', async () => {
  const file = await opened(await written({ __metadata__: { format: 'pt' }, pair }, pairBytes));
  expect(file.names).toEqual(['pair']);
  expect(file.shape('pair')).toEqual([2]);
  expect(await file.read('pair')).toEqual(new Float32Array([1.5, -2]));
});

test('half values are widened: normal, subnormal, signed zero and infinity', async () => {
  const halves = new Uint16Array([0x3c00, 0xc100, 0x0001, 0x03ff, 0x8000, 0x7bff, 0xfc00, 0x7e00]);
  const header = { h: { dtype: 'F16', shape: [8], data_offsets: [0, 16] as const } };
  const file = await opened(await written(header, new Uint8Array(halves.buffer)));
  const tiny = 2 ** -24;
  expect(await file.read('h')).toEqual(
    new Float32Array([1, -2.5, tiny, 1023 * tiny, -0, 65504, Number.NEGATIVE_INFINITY, Number.NaN]),
  );
});

test('bfloat16 values are the upper halves of float32', async () => {
  const upper = new Uint16Array([0x3f80, 0xc020, 0x0001, 0xff80]);
  const header = { b: { dtype: 'BF16', shape: [2, 2], data_offsets: [0, 8] as const } };
  const file = await opened(await written(header, new Uint8Array(upper.buffer)));
  expect(await file.read('b')).toEqual(new Float32Array([1, -2.5, 2 ** -133, Number.NEGATIVE_INFINITY]));
});

test('a tensor whose bytes begin at an odd place is read', async () => {
  const header = {
    flag: { dtype: 'BOOL', shape: [1], data_offsets: [0, 1] as const },
    pair: { ...pair, data_offsets: [1, 9] as const },
  };
  const file = await opened(await written(header, Buffer.concat([Buffer.from([1]), pairBytes])));
  expect(await file.read('pair')).toEqual(new Float32Array([1.5, -2]));
});

test('a tensor that is not of numbers with fractions may be there but is not read', async () => {
  const header = { ids: { dtype: 'I64', shape: [1], data_offsets: [0, 8] as const } };
  const file = await opened(await written(header, new Uint8Array(8)));
  await expect(file.read('ids')).rejects.toThrow(/model\.safetensors: tensor ids is of type I64/);
});

test('a tensor that is not there is named', async () => {
  const file = await opened(await written({ pair }, pairBytes));
  expect(() => file.shape('other')).toThrow(/tensor other is missing/);
});

const broken: ReadonlyArray<[string, Parameters<typeof writeSafetensors>[1], number, RegExp]> = [
  ['is not JSON', '{"pair":', 0, /header is not JSON/],
  ['is a list', '[]', 0, /header is not a JSON object/],
  ['has no dtype', { pair: { shape: [2], data_offsets: [0, 8] } }, 8, /tensor pair: has no dtype/],
  ['has a negative size', { pair: { ...pair, shape: [-2] } }, 8, /shape is not a list of sizes/],
  ['has one offset', { pair: { ...pair, data_offsets: [0] } }, 8, /data_offsets are not two byte positions/],
  [
    'ends before it begins',
    { pair: { ...pair, data_offsets: [8, 0] } },
    8,
    /ends at byte 0, before it begins/,
  ],
  ['gives too few bytes', { pair: { ...pair, data_offsets: [0, 4] } }, 4, /F32 \[2\] is 8 bytes, but 4/],
  ['overlaps', { a: pair, b: { ...pair, data_offsets: [4, 12] } }, 12, /tensor b overlaps/],
  ['leaves a gap', { a: pair, b: { ...pair, data_offsets: [12, 20] } }, 20, /tensor b leaves a gap/],
  ['leaves bytes over', { pair }, 11, /3 bytes follow the last tensor/],
  ['points past the end', { pair }, 7, /cut short/],
];

for (const [what, header, dataBytes, message] of broken) {
  test(`a header that ${what} is refused by name`, async () => {
    const path = await written(header, new Uint8Array(dataBytes));
    const opening = SafetensorsFile.open(path);
    await expect(opening).rejects.toBeInstanceOf(CheckpointError);
    await expect(opening).rejects.toThrow(message);
    await expect(opening).rejects.toThrow(path);
  });
}

test('a header longer than the file, or than the format allows, is refused', async () => {
  const path = join(await temporaryFolder(), 'model.safetensors');
  const start = Buffer.alloc(8);
  start.writeBigUInt64LE(1000n);
  await writeFile(path, start);
  await expect(SafetensorsFile.open(path)).rejects.toThrow(/cut short/);
  start.writeBigUInt64LE(2n ** 63n);
  await writeFile(path, start);
  await expect(SafetensorsFile.open(path)).rejects.toThrow(/not a safetensors file/);
});

test('a file cut short after it was opened fails the read, not the process', async () => {
  const path = await written({ pair }, pairBytes);
  const file = await opened(path);
  await truncate(path, 20);
  await expect(file.read('pair')).rejects.toThrow(/cut short/);
});

test('an empty file and a folder are refused', async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, 'empty.safetensors'), '');
  await expect(SafetensorsFile.open(join(folder, 'empty.safetensors'))).rejects.toThrow(/cut short/);
  await expect(SafetensorsFile.open(folder)).rejects.toThrow(CheckpointError);
});
