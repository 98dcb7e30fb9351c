import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buildGgufHeader, GGUFValueType, gguf } from '@huggingface/gguf';
import { temporaryFolder } from '../../temporary-folder.js';

type Value = string | number | readonly string[] | readonly number[] | null;

/**
 * A copy of a GGUF file with changed metadata: null removes a key; numbers of a new key are written as uint32, with
 * a fraction as float32. `keys` gives every key its new name, `rename` one tensor.
 */
export async function changedGguf(
  path: string,
  changes: Readonly<Record<string, Value>>,
  {
    keys = (key) => key,
    rename,
  }: { keys?: (key: string) => string; rename?: [from: string, to: string] } = {},
): Promise<string> {
  const { typedMetadata, tensorInfoByteRange, tensorDataOffset } = await gguf(path, {
    typedMetadata: true,
    allowLocalFile: true,
  });
  type Entry = (typeof typedMetadata)[string];
  const entries = new Map<string, Entry>(
    Object.entries(typedMetadata).map(([key, entry]) => [keys(key), entry as Entry]),
  );
  for (const [key, value] of Object.entries(changes)) {
    if (value === null) {
      entries.delete(key);
    } else {
      entries.set(key, { ...entries.get(key), ...typed(value) } as Entry);
    }
  }
  const bytes = await readFile(path);
  const infos = renamed(bytes.subarray(...tensorInfoByteRange), rename);
  const header = await buildGgufHeader(
    new Blob([infos]),
    Object.fromEntries(entries) as typeof typedMetadata,
    { littleEndian: true, tensorInfoByteRange: [0, infos.length] },
  );
  const written = join(await temporaryFolder(), 'changed.gguf');
  await writeFile(written, [
    Buffer.from(await header.arrayBuffer()),
    bytes.subarray(Number(tensorDataOffset)),
  ]);
  return written;
}

/** Names stand after their lengths, of eight bytes. */
function renamed(
  infos: Buffer,
  rename: readonly [from: string, to: string] | undefined,
): Buffer<ArrayBuffer> {
  if (!rename) {
    return Buffer.from(infos);
  }
  const [from, to] = rename;
  const at = infos.indexOf(from);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(to.length));
  return Buffer.concat([
    infos.subarray(0, at - 8),
    length,
    Buffer.from(to),
    infos.subarray(at + from.length),
  ]);
}

function typed(value: Exclude<Value, null>) {
  if (Array.isArray(value)) {
    const subType = typeof value[0] === 'string' ? GGUFValueType.STRING : GGUFValueType.INT32;
    return { value, type: GGUFValueType.ARRAY, subType };
  }
  if (typeof value === 'string') {
    return { value, type: GGUFValueType.STRING };
  }
  const type = Number.isInteger(value) ? GGUFValueType.UINT32 : GGUFValueType.FLOAT32;
  return { value, type };
}
