import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { AdminGate } from '../../../src/api/admin/admin-routes.js';
import { FailedAttempts } from '../../../src/api/failed-attempts.js';
import { ServiceError } from '../../../src/contract/errors.js';

const token = 'a-token-for-administration';
const address = '192.0.2.1';

function open() {
  const clock = { now: 0 };
  const lines: string[] = [];
  const logger = pino({ level: 'trace' }, { write: (line) => void lines.push(line) });
  const gate = new AdminGate({ token, logger, failures: new FailedAttempts(() => clock.now) });
  const outcome = (given: string, from = address): string => {
    try {
      gate.admit(`Bearer ${given}`, from);
      return 'admitted';
    } catch (error) {
      return error instanceof ServiceError ? error.kind : 'broken';
    }
  };
  return { clock, lines, gate, outcome };
}

describe('an address that sends wrong tokens', () => {
  it('soon has to wait, so that 10,000 tokens take hours, and fills no log', () => {
    const { clock, lines, outcome } = open();
    const outcomes = Array.from({ length: 10_000 }, (_, i) => {
      clock.now += 1;
      return outcome(`guess-${i}`);
    });
    const tried = outcomes.filter((each) => each === 'unauthorized').length;
    expect(tried).toBeLessThan(45);
    expect(outcomes.filter((each) => each === 'rpmLimit')).toHaveLength(10_000 - tried);
    expect(lines.length).toBeLessThan(2 * tried);
    expect(lines.join('')).not.toContain('guess-');
  });

  it('does not wait for requests without any', () => {
    const { lines, gate, outcome } = open();
    for (let i = 0; i < 100; i++) expect(() => gate.admit(undefined, address)).toThrow('missing or wrong');
    expect(lines).toEqual([]);
    expect(outcome(token)).toBe('admitted');
  });

  it('does not learn meanwhile which one is right', () => {
    const { clock, outcome } = open();
    for (let i = 0; i < 30; i++) outcome('guess');
    expect(outcome(token)).toBe('rpmLimit');
    expect(outcome(token, '192.0.2.2')).toBe('admitted');
    clock.now += 1_000;
    expect(outcome(token)).toBe('admitted');
  });
});
