import { expect, it } from 'vitest';
import { warmUp } from '../../src/api/warm-up.js';

it('what is parsed before the first request fits the contract', () => {
  expect(warmUp).not.toThrow();
});
