import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { manifestFormat, type WeightFormat } from './manifest.js';

/**
 * The cache: folders named by what they were made from, each there as a whole or not at all. They can be deleted at
 * any time; what is missing is fetched or compiled again.
 */

/** Where the compiled form of a checkpoint is, or would be. */
export function compiledFolder(options: {
  cacheDir: string;
  checkpointSha256: string;
  weights: WeightFormat;
}): string {
  const { cacheDir, checkpointSha256, weights } = options;
  return join(cacheDir, 'compiled', `${checkpointSha256}-${weights}-${manifestFormat}`);
}

/** Where the files of a download are, or would be; `key` names it and everything it depends on. */
export function downloadFolder({ cacheDir, key }: { cacheDir: string; key: string }): string {
  return join(cacheDir, 'downloads', key);
}

/** A builder says this often that it is alive; one that has been silent for much longer is not. */
const heartbeatMs = 15_000;
const silenceMs = 10 * heartbeatMs;

const asidePrefix = '.aside-';

/**
 * Makes `folder` by filling a folder aside, which is then renamed; nothing is done when it is there already. Two
 * processes may do the same at once: the first to finish wins and both find its work. What builders that died have
 * left beside `folder` is removed; a heartbeat tells them from the living, because processes that share a cache
 * need not share a machine.
 * @throws whatever `build` throws, with nothing left behind
 */
export async function buildAside(folder: string, build: (aside: string) => Promise<void>): Promise<void> {
  const parent = dirname(folder);
  await mkdir(parent, { recursive: true });
  await removeLeftovers(parent);
  if (await exists(folder)) {
    return;
  }
  const aside = join(parent, `${asidePrefix}${basename(folder)}-${randomUUID()}`);
  await mkdir(aside);
  const heartbeat = setInterval(() => void touch(aside), heartbeatMs).unref();
  try {
    await build(aside);
    await flush(aside);
    await renameUnlessThere(aside, folder);
  } finally {
    clearInterval(heartbeat);
    await rm(aside, { recursive: true, force: true });
  }
}

async function removeLeftovers(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    const path = join(parent, name);
    if (name.startsWith(asidePrefix) && (await silentFor(path)) > silenceMs) {
      await rm(path, { recursive: true, force: true });
    }
  }
}

/** Milliseconds since the last heartbeat; a folder that has just gone is not silent. */
async function silentFor(path: string): Promise<number> {
  return stat(path).then(
    ({ mtimeMs }) => Date.now() - mtimeMs,
    () => 0,
  );
}

async function touch(path: string): Promise<void> {
  const now = new Date();
  // The folder may have been renamed since.
  await utimes(path, now, now).catch(() => {});
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** Puts every file on the disk, so that after a power cut the name does not stand for empty files. */
async function flush(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) {
      const file = await open(join(entry.parentPath, entry.name), 'r+');
      try {
        await file.sync();
      } finally {
        await file.close();
      }
    }
  }
}

async function renameUnlessThere(aside: string, folder: string): Promise<void> {
  try {
    await rename(aside, folder);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST' && code !== 'EPERM') {
      throw error;
    }
    // Another process was quicker. Windows says EPERM, which may mean something else.
    if (!(await exists(folder))) {
      throw error;
    }
  }
}
