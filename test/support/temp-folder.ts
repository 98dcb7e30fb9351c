import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface TempFolder {
  readonly path: string;
  remove(): Promise<void>;
}

/** A new folder that other users may enter: as root, Postgres runs as one. */
export async function makeTempFolder(name: string): Promise<TempFolder> {
  const path = await mkdtemp(join(tmpdir(), `headrace-${name}-`));
  await chmod(path, 0o755);
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}
