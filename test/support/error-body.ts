import { expect } from 'vitest';

/** What an error's body must equal; `message` may be a matcher. */
export function errorBody(code: number, message: unknown) {
  const stringOrNull = expect.toBeOneOf([expect.any(String), null]);
  const error = { message, type: expect.any(String), param: stringOrNull, code: stringOrNull };
  return { code, message, data: null, error };
}
