import { describe, expect, it } from 'vitest';
import { createProgress } from '../../src/cli/progress.js';
import { TestTerminal } from './client/local-service.js';

describe('progress outside of a terminal', () => {
  it('is a line when a task begins and one at each quarter', () => {
    const terminal = new TestTerminal();
    const progress = createProgress(terminal);

    for (let percent = 0; percent <= 100; percent += 1) progress.update('a-model: compiling', percent / 100);
    progress.end();

    expect(terminal.errors.split('\n')).toEqual([
      'a-model: compiling  0%',
      'a-model: compiling  25%',
      'a-model: compiling  50%',
      'a-model: compiling  75%',
      'a-model: compiling  100%',
      '',
    ]);
  });

  it('begins anew with the next task', () => {
    const terminal = new TestTerminal();
    const progress = createProgress(terminal);

    progress.update('one', 0.5);
    progress.update('two', 0);

    expect(terminal.errors).toBe('one  50%\ntwo  0%\n');
  });
});

describe('progress on a terminal', () => {
  it('is a bar that leaves the cursor visible and the line ended', () => {
    const terminal = new TestTerminal({ isTTY: true });
    const progress = createProgress(terminal);

    progress.update('a-model: compiling', 0);
    progress.update('a-model: compiling', 1);
    progress.end();

    const { errors: output } = terminal;
    expect(output).toContain('a-model: compiling  █');
    expect(output).toContain('100%');
    expect(output.lastIndexOf('\u001b[?25h')).toBeGreaterThan(output.lastIndexOf('\u001b[?25l'));
    expect(output.endsWith('\n')).toBe(true);
  });
});
