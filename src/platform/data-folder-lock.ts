import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

/** Another process is using the data folder; the message says which, and what to do. */
export class DataFolderInUseError extends Error {
  override readonly name = 'DataFolderInUseError';
}

const holderSchema = z.object({
  pid: z.int(),
  /** Tells the holder from a later process with the same id; empty where the system does not say. */
  startedAt: z.string(),
});
type Holder = z.infer<typeof holderSchema>;

/**
 * Claims a data folder for this process. The claim of a process that died does not count.
 * @returns Gives the folder free again.
 * @throws DataFolderInUseError
 */
export async function lockDataFolder(dataDir: string): Promise<() => Promise<void>> {
  await mkdir(dataDir, { recursive: true });
  const path = join(dataDir, 'serve.pid');
  const aside = `${path}.${process.pid}`;
  const own: Holder = { pid: process.pid, startedAt: await processStart(process.pid) };
  await writeFile(aside, JSON.stringify(own));
  try {
    // A link is made whole or not at all, and only where nothing stands.
    while (!(await succeeds(link(aside, path), 'EEXIST'))) {
      const holder = await readHolder(path);
      if (holder && (await alive(holder))) {
        throw new DataFolderInUseError(
          `Another Headrace (process ${holder.pid}) is using ${dataDir}. Stop it, or set HEADRACE_DATA_DIR to another folder.`,
        );
      }
      await succeeds(rename(path, `${aside}.stale`), 'ENOENT');
    }
  } finally {
    await rm(aside, { force: true });
    await rm(`${aside}.stale`, { force: true });
  }
  return () => rm(path, { force: true });
}

async function readHolder(path: string): Promise<Holder | undefined> {
  try {
    return holderSchema.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch {
    // Given free in between, or written by nobody we know.
    return undefined;
  }
}

async function alive({ pid, startedAt }: Holder): Promise<boolean> {
  if (!processExists(pid)) return false;
  return startedAt === '' || startedAt === (await processStart(pid));
}

/** Whether a process has this id, whoever it belongs to. */
export function processExists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Field 22 of /proc/<pid>/stat, counted after the name in parentheses, which may hold anything. See proc(5). */
async function processStart(pid: number): Promise<string> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}

async function succeeds(work: Promise<void>, unless: string): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === unless) return false;
    throw error;
  }
}
