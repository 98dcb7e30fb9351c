import type { FastifyReply } from 'fastify';
import { secondsLeft } from '../contract/limit-error.js';
import type { Budget, LimitVerdict } from './limit-store.js';

/** Tells the client what is left of the minute; a limit that is not set has no headers. */
export function setLimitHeaders(response: FastifyReply, { requests, tokens, at }: LimitVerdict): void {
  const reset = secondsLeft(at, 'minute');
  setBudget(response, 'requests', requests, reset);
  setBudget(response, 'tokens', tokens, reset);
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
