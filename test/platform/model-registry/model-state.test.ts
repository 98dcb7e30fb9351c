import { describe, expect, it } from 'vitest';
import { initialState, isServed, refusalOf } from '../../../src/platform/model-registry/model-state.js';

const now = new Date('2026-06-01T00:00:00Z');
const later = new Date('2026-06-01T00:00:01Z');
const caller = { accountId: 'a', verified: false };
const deprecated = { ...initialState, state: 'deprecated', deprecatedAt: now, sunsetAt: later } as const;

describe('the state of a model', () => {
  it('is online and open while nobody decided otherwise', () => {
    expect(refusalOf(initialState, caller, now)).toBeUndefined();
  });

  it('has a deprecated model served until its sunset and not from then on', () => {
    expect(isServed(deprecated, now)).toBe(true);
    expect(isServed(deprecated, later)).toBe(false);
  });

  it('makes an offline model look as if there were none, also to those on its list', () => {
    const offline = {
      ...initialState,
      state: 'offline',
      access: 'listed',
      accounts: new Set(['a']),
    } as const;
    expect(refusalOf(offline, caller, now)).toBe('modelNotFound');
  });

  it('opens a listed model to the accounts on its list alone', () => {
    const listed = { ...initialState, access: 'listed', accounts: new Set(['a']) } as const;
    expect(refusalOf(listed, caller, now)).toBeUndefined();
    expect(refusalOf(listed, { accountId: 'b', verified: true }, now)).toBe('modelNotOpen');
  });

  it('opens a model for verified accounts to those alone', () => {
    const forVerified = { ...initialState, access: 'verified', accounts: new Set(['a']) } as const;
    expect(refusalOf(forVerified, caller, now)).toBe('verificationRequired');
    expect(refusalOf(forVerified, { accountId: 'b', verified: true }, now)).toBeUndefined();
  });
});
