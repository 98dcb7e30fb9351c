import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { SafetensorsFolder } from '../../../../src/models/compile/safetensors/safetensors-folder.js';
import { temporaryFolder } from '../../temporary-folder.js';
import { writeSafetensors } from './write-safetensors.js';

async function shards(weightMap: Record<string, string>): Promise<string> {
  const folder = await temporaryFolder();
  for (const [index, name] of ['a', 'b'].entries()) {
    await writeSafetensors(
      join(folder, `model-0000${index + 1}-of-00002.safetensors`),
      { [name]: { dtype: 'F32', shape: [1], data_offsets: [0, 4] } },
      new Uint8Array(new Float32Array([index + 1]).buffer),
    );
  }
  await writeFile(join(folder, 'model.safetensors.index.json'), JSON.stringify({ weight_map: weightMap }));
  return folder;
}

const first = 'model-00001-of-00002.safetensors';
const second = 'model-00002-of-00002.safetensors';

test('shards are read as one', async () => {
  const weights = await SafetensorsFolder.open(await shards({ a: first, b: second }));
  onTestFinished(() => weights.close());
  expect(weights.names).toEqual(['a', 'b']);
  expect(await weights.owner('b')?.read('b')).toEqual(new Float32Array([2]));
});

test('a tensor that is not in the shard the index names is refused', async () => {
  await expect(SafetensorsFolder.open(await shards({ a: second }))).rejects.toThrow(
    /00002-of-00002\.safetensors: tensor a is missing/,
  );
});

test('a shard that is not there is named', async () => {
  await expect(SafetensorsFolder.open(await shards({ a: 'model-3.safetensors' }))).rejects.toThrow(
    /model-3\.safetensors: ENOENT/,
  );
});

test('an index that points out of the folder is refused', async () => {
  await expect(SafetensorsFolder.open(await shards({ a: `../${first}` }))).rejects.toThrow(
    /is not a file name/,
  );
});

test('an index without a weight map is refused', async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, 'model.safetensors.index.json'), '{}');
  await expect(SafetensorsFolder.open(folder)).rejects.toThrow(/index\.json: weight_map/);
});

test('a folder without safetensors is refused', async () => {
  await expect(SafetensorsFolder.open(await temporaryFolder())).rejects.toThrow(
    /neither model\.safetensors nor/,
  );
});
