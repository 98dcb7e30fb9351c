import type { FastifyReply } from 'fastify';
import { type ErrorKind, ServiceError } from '../contract/errors.js';
import type { LimitName } from '../contract/limits.js';
import type { Budget, LimitVerdict } from './limit-store.js';

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

/** Tells the client what is left of the minute; a limit that is not set has no headers. */
export function setLimitHeaders(response: FastifyReply, { requests, tokens, at }: LimitVerdict): void {
  const reset = secondsLeft(at, minuteMs);
  setBudget(response, 'requests', requests, reset);
  setBudget(response, 'tokens', tokens, reset);
}

/** Why a request is refused, with the time until the window ends that it did not fit into. */
export function limitError(name: LimitName, at: Date): ServiceError {
  const kind = `${name}Limit` satisfies ErrorKind;
  const retryAfterSeconds = secondsLeft(at, name.endsWith('d') ? dayMs : minuteMs);
  return new ServiceError(kind, undefined, { retryAfterSeconds });
}

function setBudget(
  response: FastifyReply,
  name: 'requests' | 'tokens',
  budget: Budget | undefined,
  resetSeconds: number,
): void {
  if (budget === undefined) return;
  response.header(`x-ratelimit-limit-${name}`, budget.limit);
  response.header(`x-ratelimit-remaining-${name}`, budget.remaining);
  response.header(`x-ratelimit-reset-${name}`, resetSeconds);
}

/** Until the end of the UTC window that `at` is in, at least 1. */
function secondsLeft(at: Date, windowMs: number): number {
  return Math.ceil((windowMs - (at.getTime() % windowMs)) / 1000);
}
