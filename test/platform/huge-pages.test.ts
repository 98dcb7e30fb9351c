import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hugePageVariables, lacksHugePages } from '../../src/platform/huge-pages.js';
import { makeTempFolder } from '../support/temp-folder.js';

/** KiB of huge pages that a process holds which wrote to 64 MiB. */
const program = `
  new Uint8Array(64 * 1024 * 1024).fill(1);
  const sizes = require('node:fs').readFileSync('/proc/self/smaps_rollup', 'utf8');
  process.stdout.write(/AnonHugePages: *(\\d+) kB/.exec(sizes)[1]);
`;

/** Whether this machine has what it takes: a kernel that gives huge pages to those who ask, and glibc 2.35. */
function canAsk(): boolean {
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  const [, minor = 0] = (header.glibcVersionRuntime ?? '').split('.').map(Number);
  return (
    readFileSync('/sys/kernel/mm/transparent_hugepage/enabled', 'utf8').includes('[madvise]') && minor >= 35
  );
}

describe('variables for huge pages', () => {
  it('ask the allocator for them', () => {
    expect(hugePageVariables({})).toEqual({ GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1' });
  });

  it('keep what else is tuned', () => {
    expect(hugePageVariables({ GLIBC_TUNABLES: 'glibc.malloc.arena_max=2' })).toEqual({
      GLIBC_TUNABLES: 'glibc.malloc.arena_max=2:glibc.malloc.hugetlb=1',
    });
  });

  it('leave the decision of the environment alone', () => {
    const decided = { GLIBC_TUNABLES: 'glibc.malloc.hugetlb=0' };
    expect(hugePageVariables(decided)).toEqual(decided);
  });

  it.skipIf(!canAsk())('give them to a process', () => {
    const held = (env: NodeJS.ProcessEnv) =>
      Number(execFileSync(process.execPath, ['-e', program], { env: { PATH: process.env.PATH, ...env } }));
    expect(held({})).toBeLessThan(64 * 1024 * 0.9);
    expect(held(hugePageVariables({}))).toBeGreaterThan(64 * 1024 * 0.9);
  });
});

describe('a process that could be quicker', () => {
  it.each([
    ['always madvise [never]', {}, false],
    ['[always] madvise never', {}, false],
    ['always [madvise] never', {}, true],
    ['always [madvise] never', { GLIBC_TUNABLES: 'glibc.malloc.arena_max=2' }, true],
    ['always [madvise] never', { GLIBC_TUNABLES: 'glibc.malloc.hugetlb=0' }, false],
    ['always [madvise] never', hugePageVariables({}), false],
  ])('where the kernel says %s and the variables are %j: %s', async (setting, variables, expected) => {
    const folder = await makeTempFolder('pages');
    const file = join(folder.path, 'enabled');
    await writeFile(file, `${setting}\n`);
    expect(await lacksHugePages(variables, file)).toBe(expected);
    await folder.remove();
  });

  it('is none where the kernel says nothing', async () => {
    expect(await lacksHugePages({}, '/no/such/file')).toBe(false);
  });
});
