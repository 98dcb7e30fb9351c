import { readFile } from 'node:fs/promises';

/** https://www.gnu.org/software/libc/manual/html_node/Memory-Allocation-Tunables.html */
const tunable = 'glibc.malloc.hugetlb';
/**
 * Threads have heaps of their own otherwise, which grow by less than a huge page and never get one; the thread of the
 * engine allocates the weights.
 */
const oneHeap = 'glibc.malloc.arena_max';
/** Where Linux says whether it gives huge pages: always, never, or to those who ask (`madvise`). */
const kernelSetting = '/sys/kernel/mm/transparent_hugepage/enabled';

/**
 * Variables with which a process that is started gets its memory in huge pages where the kernel gives them to those
 * who ask. Reading hundreds of MiB of weights at every step, it spends up to a fifth of its time on looking up small
 * ones. C libraries other than glibc, and glibc before 2.35, take no notice.
 */
export function hugePageVariables({ GLIBC_TUNABLES: others }: NodeJS.ProcessEnv): {
  GLIBC_TUNABLES: string;
} {
  if (others?.includes(tunable)) return { GLIBC_TUNABLES: others };
  const heaps = others?.includes(oneHeap) ? [] : [`${oneHeap}=1`];
  return { GLIBC_TUNABLES: [...(others ? [others] : []), `${tunable}=1`, ...heaps].join(':') };
}

/** Whether a process with these variables would be quicker with those of {@link hugePageVariables}. */
export async function lacksHugePages(
  { GLIBC_TUNABLES: tunables }: NodeJS.ProcessEnv,
  settingFile = kernelSetting,
): Promise<boolean> {
  if (tunables?.includes(tunable)) return false;
  const setting = await readFile(settingFile, 'utf8').catch(() => '');
  return setting.includes('[madvise]');
}
