import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { createLogLines } from '../../src/cli/console-log.js';

const line = '{"level":40,"time":1732147200000,"pid":7,"name":"worker","msg":"it happened","count":3}';

function write(text: string, { isTTY }: { isTTY: boolean }): string {
  const stderr = Object.assign(new PassThrough(), { isTTY });
  createLogLines({ stderr }).write(text);
  return String(stderr.read());
}

describe('log lines', () => {
  it.each([line, `${line}\n`])('stay JSON outside of a terminal', (text) => {
    expect(write(text, { isTTY: false })).toBe(`${line}\n`);
  });

  it('are one readable line on a terminal', () => {
    const shown = write(`${line}\n`, { isTTY: true });

    expect(shown).toMatch(/WARN.*it happened.*"count":3/);
    expect(shown.trimEnd()).not.toContain('\n');
  });

  it('that are no JSON are shown as they are', () => {
    expect(write('Segmentation fault', { isTTY: true })).toBe('Segmentation fault\n');
  });
});
