import { writeFile } from 'node:fs/promises';

export interface WrittenTensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data_offsets: readonly [number, number];
}

/** Writes a .safetensors file with exactly this header and these bytes, valid or not. */
export async function writeSafetensors(
  path: string,
  header: Record<string, WrittenTensor | Record<string, unknown>> | string,
  data: Uint8Array,
): Promise<void> {
  const json = Buffer.from(typeof header === 'string' ? header : JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  await writeFile(path, Buffer.concat([length, json, data]));
}
