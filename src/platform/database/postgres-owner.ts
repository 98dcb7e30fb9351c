import { execFile } from 'node:child_process';
import { chown, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Whom Postgres runs as: empty means the user of this process. */
export interface Owner {
  readonly uid?: number;
  readonly gid?: number;
}

/**
 * Postgres refuses to run as root; root runs it as the user `postgres`, which is created where it is missing.
 * @throws Error when it cannot be created.
 */
export async function findOwner(): Promise<Owner> {
  if (process.getuid?.() !== 0) return {};
  return (await lookUp()) ?? (await create());
}

async function lookUp(): Promise<Owner | undefined> {
  try {
    const [uid, gid] = await Promise.all([run('id', ['-u', 'postgres']), run('id', ['-g', 'postgres'])]);
    return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
  } catch {
    return undefined;
  }
}

async function create(): Promise<Owner> {
  const failures: unknown[] = [];
  const commands = [
    ['useradd', '--system', '--user-group', '--no-create-home', 'postgres'],
    // Alpine.
    ['adduser', '-S', '-D', '-H', 'postgres'],
  ] as const;
  for (const [command, ...args] of commands) {
    await run(command, args).catch((error) => failures.push(error));
    const owner = await lookUp();
    if (owner) return owner;
  }
  throw new Error(
    'Postgres does not run as root, and the user "postgres" could not be created. Run as another user, or set DATABASE_URL.',
    { cause: failures[0] },
  );
}

/** Whether `owner` may enter `path` and every folder above it, going by their modes. */
export async function reachable(path: string, owner: Owner): Promise<boolean> {
  if (owner.uid === undefined) return true;
  for (let folder = path; ; folder = dirname(folder)) {
    const { mode, uid, gid } = await stat(folder);
    const bit = uid === owner.uid ? 0o100 : gid === owner.gid ? 0o010 : 0o001;
    if ((mode & bit) === 0) return false;
    if (folder === dirname(folder)) return true;
  }
}

/** Gives a file or folder to the owner. */
export async function giveTo(owner: Owner, path: string): Promise<void> {
  if (owner.uid !== undefined && owner.gid !== undefined) await chown(path, owner.uid, owner.gid);
}
