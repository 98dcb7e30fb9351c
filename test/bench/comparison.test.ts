import { describe, expect, it } from 'vitest';
import { compare, type Run, undisturbed } from '../../bench/compare/comparison.js';
import { shareOfOthers } from '../../bench/compare/machine.js';
import { summarize } from '../../bench/load/summary.js';

function run(server: string, clients: number, tokens: number, firstTokenMs: number): Run {
  const exchange = {
    latencyMs: 1000,
    firstTokenMs,
    gapsMs: [],
    promptTokens: 1,
    cachedTokens: 0,
    outputTokens: tokens,
    documents: 0,
  };
  const load = { clients, elapsedMs: 1000, exchanges: [exchange], failures: new Map(), clientCpu: 0 };
  return { server, round: 0, others: null, cpuMsPerToken: 3, summary: summarize(load) };
}

describe('a comparison', () => {
  it('takes medians of each server and number of clients, and their ratios', () => {
    const runs = [
      ...[100, 300, 200].map((tokens) => run('ours', 1, tokens, 10)),
      ...[50, 10, 90].map((tokens) => run('theirs', 1, tokens, 40)),
      run('ours', 8, 900, 20),
      run('theirs', 8, 300, 20),
    ];

    expect(compare(['ours', 'theirs'], runs)).toMatchObject([
      {
        clients: 1,
        tokensPerSecond: { ours: 200, theirs: 50 },
        tokensPerSecondRatios: { theirs: 4 },
        firstTokenRatios: { theirs: 0.25 },
        cpuMsPerToken: { ours: 3, theirs: 3 },
      },
      { clients: 8, tokensPerSecondRatios: { theirs: 3 }, firstTokenRatios: { theirs: 1 } },
    ]);
  });
});

describe('undisturbed runs', () => {
  it('are those with few others, or of a system that does not tell', () => {
    const runs = [0.02, 0.3, null].map((others) => ({ ...run('ours', 1, 1, 1), others }));

    expect(undisturbed(runs, 0.1).map(({ others }) => others)).toEqual([0.02, null]);
  });
});

describe('the share of others', () => {
  const time = (worked: number, possible: number, ofProcess: number) => ({ worked, possible, ofProcess });

  it('is what neither the server nor its client worked', () => {
    expect(shareOfOthers(time(0, 0, 0), time(1500, 2000, 900), 100)).toBe(0.25);
  });

  it('is never below nothing, whatever the clocks round', () => {
    expect(shareOfOthers(time(0, 0, 0), time(990, 2000, 900), 100)).toBe(0);
  });
});
