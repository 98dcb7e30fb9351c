import { formatTable } from '../../src/cli/table.js';
import { median } from '../load/percentiles.js';
import type { Summary } from '../load/summary.js';

/** One server under one number of clients in one round. */
export interface Run {
  readonly server: string;
  readonly round: number;
  /** Share of all cores that processes other than the server and its client used meanwhile; null where unknown. */
  readonly others: number | null;
  /** Processor time of the server for each output token, in milliseconds, warm-up apart; null where unknown. */
  readonly cpuMsPerToken: number | null;
  readonly summary: Summary;
}

/** Runs that others did not disturb: they used no more than `maxOthers` of the machine, as far as is known. */
export function undisturbed(runs: readonly Run[], maxOthers: number): Run[] {
  return runs.filter(({ others }) => others === null || others <= maxOthers);
}

/** Medians over the rounds. Ratios are the first server's value over another's, by that one's name. */
export interface Comparison {
  readonly clients: number;
  readonly tokensPerSecond: Readonly<Record<string, number>>;
  readonly firstTokenMs: Readonly<Record<string, number>>;
  readonly interTokenMs: Readonly<Record<string, number>>;
  readonly cpuMsPerToken: Readonly<Record<string, number>>;
  readonly tokensPerSecondRatios: Readonly<Record<string, number>>;
  readonly firstTokenRatios: Readonly<Record<string, number>>;
}

/** `servers` in the order of the columns; the first is the one that the others are compared with. */
export function compare(servers: readonly string[], runs: readonly Run[]): Comparison[] {
  const clients = [...new Set(runs.map(({ summary }) => summary.clients))];
  return clients.map((count) => {
    const medians = (value: (run: Run) => number | null) =>
      Object.fromEntries(
        servers.map((server) => {
          const ofServer = runs.filter((run) => run.server === server && run.summary.clients === count);
          return [server, median(ofServer.flatMap((run) => value(run) ?? [])) ?? Number.NaN];
        }),
      );
    const ratios = (values: Readonly<Record<string, number>>) =>
      Object.fromEntries(servers.slice(1).map((other) => [other, values[servers[0]!]! / values[other]!]));
    const tokensPerSecond = medians(({ summary }) => summary.outputTokensPerSecond);
    const firstTokenMs = medians(({ summary }) => summary.firstTokenMs.p50);
    return {
      clients: count,
      tokensPerSecond,
      firstTokenMs,
      interTokenMs: medians(({ summary }) => summary.interTokenMs.p50),
      cpuMsPerToken: medians((run) => run.cpuMsPerToken),
      tokensPerSecondRatios: ratios(tokensPerSecond),
      firstTokenRatios: ratios(firstTokenMs),
    };
  });
}

export function formatComparison(servers: readonly string[], comparisons: readonly Comparison[]): string {
  const [first, ...others] = servers;
  const table = (
    values: (comparison: Comparison) => Readonly<Record<string, number>>,
    ratios: (comparison: Comparison) => Readonly<Record<string, number>>,
    digits: number,
  ) =>
    formatTable(
      ['clients', ...servers, ...others.map((other) => `${first} / ${other}`)],
      comparisons.map((comparison) => [
        String(comparison.clients),
        ...servers.map((server) => values(comparison)[server]!.toFixed(digits)),
        ...others.map((other) => ratios(comparison)[other]!.toFixed(2)),
      ]),
    );
  const plain = (values: (comparison: Comparison) => Readonly<Record<string, number>>, digits: number) =>
    formatTable(
      ['clients', ...servers],
      comparisons.map((comparison) => [
        String(comparison.clients),
        ...servers.map((server) => values(comparison)[server]!.toFixed(digits)),
      ]),
    );
  return [
    'output tokens/s',
    table(
      ({ tokensPerSecond }) => tokensPerSecond,
      ({ tokensPerSecondRatios }) => tokensPerSecondRatios,
      1,
    ),
    '',
    'time to first token, p50 in ms',
    table(
      ({ firstTokenMs }) => firstTokenMs,
      ({ firstTokenRatios }) => firstTokenRatios,
      0,
    ),
    '',
    'inter-token latency, p50 in ms',
    plain(({ interTokenMs }) => interTokenMs, 1),
    '',
    'processor time of the server for each output token, in ms',
    plain(({ cpuMsPerToken }) => cpuMsPerToken, 2),
  ].join('\n');
}
