import { type ErrorKind, ServiceError } from './errors.js';
import type { LimitName } from './limits.js';

const windowMs = { minute: 60_000, day: 24 * 60 * 60_000 };

/** Why a request is refused, with the time until the window ends that it did not fit into. */
export function limitError(name: LimitName, at: Date): ServiceError {
  const kind = `${name}Limit` satisfies ErrorKind;
  const retryAfterSeconds = secondsLeft(at, name.endsWith('d') ? 'day' : 'minute');
  return new ServiceError(kind, undefined, { retryAfterSeconds });
}

/** Until the end of the UTC window that `at` is in, at least 1. */
export function secondsLeft(at: Date, window: keyof typeof windowMs): number {
  const ms = windowMs[window];
  return Math.ceil((ms - (at.getTime() % ms)) / 1000);
}
