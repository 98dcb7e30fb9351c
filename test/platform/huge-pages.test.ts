import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { hugePageVariables, lacksHugePages } from '../../src/platform/huge-pages.js';
import { makeTempFolder } from '../support/temp-folder.js';

/**
 * KiB of huge pages that a process holds whose thread wrote to 64 MiB, half a MiB at a time. What was freed before
 * makes the allocator take pieces of that size from its heap, as the loading of a model does.
 */
const program = `
  const { Worker, isMainThread, parentPort } = require('node:worker_threads');
  if (isMainThread) new Worker(__filename).on('message', (size) => process.stdout.write(size));
  else {
    new Uint8Array(24 * 1024 * 1024);
    gc();
    const parts = Array.from({ length: 128 }, () => new Uint8Array(512 * 1024).fill(1));
    const sizes = require('node:fs').readFileSync('/proc/self/smaps_rollup', 'utf8');
    parentPort.postMessage(/AnonHugePages: *(\\d+) kB/.exec(sizes)[1]);
    parts.length = 0;
  }
`;

/** Whether this machine has what it takes: a kernel that gives huge pages to those who ask, and glibc 2.35. */
async function canAsk(): Promise<boolean> {
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  const [, minor = 0] = (header.glibcVersionRuntime ?? '').split('.').map(Number);
  return minor >= 35 && (await lacksHugePages({}));
}
const isAbleToAsk = await canAsk();

/** A file in a folder that goes when the test ends. */
async function temporaryFile(name: string, text: string): Promise<string> {
  const folder = await makeTempFolder('pages');
  onTestFinished(() => folder.remove());
  const file = join(folder.path, name);
  await writeFile(file, text);
  return file;
}

describe('variables for huge pages', () => {
  it('ask the allocator for them', () => {
    expect(hugePageVariables({})).toEqual({
      GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1:glibc.malloc.arena_max=1',
    });
  });

  it('keep what else is tuned', () => {
    expect(hugePageVariables({ GLIBC_TUNABLES: 'glibc.malloc.perturb=0' })).toEqual({
      GLIBC_TUNABLES: 'glibc.malloc.perturb=0:glibc.malloc.hugetlb=1:glibc.malloc.arena_max=1',
    });
  });

  it('leave the number of heaps as it is tuned', () => {
    expect(hugePageVariables({ GLIBC_TUNABLES: 'glibc.malloc.arena_max=4' })).toEqual({
      GLIBC_TUNABLES: 'glibc.malloc.arena_max=4:glibc.malloc.hugetlb=1',
    });
  });

  it('leave the decision of the environment alone', () => {
    const decided = { GLIBC_TUNABLES: 'glibc.malloc.hugetlb=0' };
    expect(hugePageVariables(decided)).toEqual(decided);
  });

  it.skipIf(!isAbleToAsk)('give them to a thread of a process', async () => {
    const file = await temporaryFile('program.cjs', program);
    const held = (env: NodeJS.ProcessEnv) =>
      Number(
        execFileSync(process.execPath, ['--expose-gc', file], { env: { PATH: process.env.PATH, ...env } }),
      );
    expect(held({})).toBe(0);
    expect(held(hugePageVariables({}))).toBeGreaterThan(48 * 1024);
  });
});

describe('a process that could be quicker', () => {
  it.each([
    ['always madvise [never]', {}, false],
    ['[always] madvise never', {}, false],
    ['always [madvise] never', {}, true],
    ['always [madvise] never', { GLIBC_TUNABLES: 'glibc.malloc.perturb=0' }, true],
    ['always [madvise] never', { GLIBC_TUNABLES: 'glibc.malloc.hugetlb=0' }, false],
    ['always [madvise] never', hugePageVariables({}), false],
  ])('where the kernel says %s and the variables are %j: %s', async (setting, variables, expected) => {
    const file = await temporaryFile('enabled', `${setting}\n`);
    expect(await lacksHugePages(variables, file)).toBe(expected);
  });

  it('is none where the kernel says nothing', async () => {
    expect(await lacksHugePages({}, '/no/such/file')).toBe(false);
  });
});
