import { createWriteStream } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { type Entry, openPromise } from 'yauzl';

export interface UnpackOptions {
  readonly archive: string;
  /** Path inside the archive: of one file, or of a folder, or empty for everything. */
  readonly path: string;
  /** Files are written below this folder, by their place below `path`; a single file by its name. */
  readonly folder: string;
  readonly signal: AbortSignal;
}

/**
 * Unpacks a part of a zip file. Entries become plain files whatever the archive says of them, and none is written
 * outside `folder`.
 * @returns how many files were written
 * @throws Error when the archive is broken, or an entry's name leads out of it
 */
export async function unpackZip({ archive, path, folder, signal }: UnpackOptions): Promise<number> {
  const zip = await openPromise(archive);
  let written = 0;
  try {
    for await (const entry of zip.eachEntry()) {
      signal.throwIfAborted();
      const place = placeBelow(path, entry);
      if (place === undefined) {
        continue;
      }
      const target = join(folder, place);
      if (relative(folder, target).split(sep)[0] === '..') {
        throw new Error(`entry ${entry.fileName} leads out of the archive`);
      }
      await mkdir(dirname(target), { recursive: true });
      const contents = await zip.openReadStreamPromise(entry);
      await pipeline(contents, createWriteStream(target, { flags: 'wx' }), { signal });
      written += 1;
    }
  } finally {
    zip.close();
  }
  return written;
}

/** An entry's place below `path`; undefined for folders and for what is not there. */
function placeBelow(path: string, { fileName }: Entry): string | undefined {
  const prefix = path === '' ? '' : `${path.replace(/\/+$/, '')}/`;
  if (fileName === path && !fileName.endsWith('/')) {
    return fileName.slice(fileName.lastIndexOf('/') + 1);
  }
  return fileName.startsWith(prefix) && !fileName.endsWith('/') ? fileName.slice(prefix.length) : undefined;
}
