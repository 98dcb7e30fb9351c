import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';

/** Processor time since the start, in milliseconds; not numbers where the system does not tell in this way. */
export interface ProcessorTime {
  /** Of all cores: what they worked, and what they could have. */
  readonly worked: number;
  readonly possible: number;
  /** Of one process and those that it started. */
  readonly ofProcess: number;
}

/** From proc(5), as Linux has it. */
async function readProcessorTime(pid: number): Promise<ProcessorTime> {
  const stat = await readFile('/proc/stat', 'utf8').catch(() => undefined);
  if (stat === undefined) return { worked: Number.NaN, possible: Number.NaN, ofProcess: Number.NaN };
  const [user, nice, system, idle, waiting, interrupts, softInterrupts, stolen] = /^cpu +(.+)$/m
    .exec(stat)![1]!
    .split(' ')
    .map((hundredths) => Number(hundredths) * 10);
  const worked = user! + nice! + system! + interrupts! + softInterrupts! + stolen!;
  return { worked, possible: worked + idle! + waiting!, ofProcess: await timeOfTree(pid) };
}

/** What share of all cores worked for neither `pid`'s processes nor this one, which used `ownMs`. */
export function shareOfOthers(before: ProcessorTime, after: ProcessorTime, ownMs: number): number {
  const others = after.worked - before.worked - (after.ofProcess - before.ofProcess) - ownMs;
  return Math.max(0, others) / (after.possible - before.possible);
}

/** How long the machine is watched to call it quiet. */
const quietMs = 2_000;

/**
 * Resolves when others than `pid`'s processes and this one use no more than `maxOthers` of the machine, or when the
 * system does not tell.
 */
export async function waitUntilQuiet(pid: number, maxOthers: number, signal: AbortSignal): Promise<void> {
  for (;;) {
    const watch = await watchMachine(pid);
    await delay(quietMs, undefined, { signal });
    const { others } = await watch();
    if (Number.isNaN(others) || others <= maxOthers) return;
  }
}

/** What the machine did while it was watched. */
export interface Watched {
  /** Share of all cores that worked for neither the watched processes nor this one; not a number where unknown. */
  readonly others: number;
  /** Processor time of the watched processes, in milliseconds; not a number where unknown. */
  readonly serverCpuMs: number;
}

/** Watches the machine and the processes of `pid` from now on, until what it returns is called. */
export async function watchMachine(pid: number): Promise<() => Promise<Watched>> {
  const before = await readProcessorTime(pid);
  const ownBefore = process.cpuUsage();
  return async () => {
    const after = await readProcessorTime(pid);
    const { user, system } = process.cpuUsage(ownBefore);
    return {
      others: shareOfOthers(before, after, (user + system) / 1000),
      serverCpuMs: after.ofProcess - before.ofProcess,
    };
  };
}

async function timeOfTree(root: number): Promise<number> {
  const processes = new Map<number, { parent: number; ms: number }>();
  for (const name of await readdir('/proc')) {
    const stat = /^\d+$/.test(name) ? await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '') : '';
    // The fields after the program's name, which may hold anything, from the third of proc(5) on.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields.length < 15) continue;
    const hundredths = fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0);
    processes.set(Number(name), { parent: Number(fields[1]), ms: hundredths * 10 });
  }
  const isOfTree = (pid: number): boolean => {
    if (pid === root) return true;
    const process = processes.get(pid);
    return process !== undefined && isOfTree(process.parent);
  };
  return [...processes].reduce((sum, [pid, { ms }]) => (isOfTree(pid) ? sum + ms : sum), 0);
}
