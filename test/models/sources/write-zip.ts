import { writeFile } from 'node:fs/promises';
import { crc32, deflateRawSync } from 'node:zlib';

export interface ZipEntry {
  readonly name: string;
  readonly contents: string | Uint8Array;
  /** Unix mode, as in st_mode. */
  readonly mode?: number;
}

/** Writes a zip file with exactly these entries, whatever their names. */
export async function writeZip(path: string, entries: readonly ZipEntry[]): Promise<void> {
  await writeFile(path, zip(entries));
}

/** The bytes of a zip file (APPNOTE.TXT 4.3): local headers with deflated data, central directory, its end. */
export function zip(entries: readonly ZipEntry[]): Buffer {
  const locals: Buffer[] = [];
  const centrals: Buffer[] = [];
  let offset = 0;
  for (const { name, contents, mode = 0o100644 } of entries) {
    const plain = Buffer.from(contents);
    const data = deflateRawSync(plain);
    const nameBytes = Buffer.from(name);
    // Version, flags (UTF-8 names), method, time and date, checksum, sizes, lengths of name and extra field.
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(0x800, 2);
    common.writeUInt16LE(8, 4);
    common.writeUInt32LE(crc32(plain), 10);
    common.writeUInt32LE(data.length, 14);
    common.writeUInt32LE(plain.length, 18);
    common.writeUInt16LE(nameBytes.length, 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, nameBytes, data]);
    // Comment, disk, internal and external attributes, place of the local header.
    const place = Buffer.alloc(14);
    place.writeUInt32LE((mode << 16) >>> 0, 6);
    place.writeUInt32LE(offset, 10);
    centrals.push(Buffer.concat([Buffer.from('PK\x01\x02'), Buffer.from([20, 3]), common, place, nameBytes]));
    locals.push(local);
    offset += local.length;
  }
  const directory = Buffer.concat(centrals);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 0, 'latin1');
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...locals, directory, end]);
}
