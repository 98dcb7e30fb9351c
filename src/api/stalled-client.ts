import { Socket } from 'node:net';

/** Far longer than a slow network pauses, and far shorter than a connection may stay open. */
const stalledMs = 30_000;

/** None while a pipelined response waits for its turn; something else when a request is injected. */
type MaybeSocket = object | null;

/**
 * From now on the client is cut off when it reads nothing for a while, until {@link allowSilence}: to be called when
 * there is something to read. Node.js counts a write that makes any progress as activity.
 */
export function forbidSilence(socket: MaybeSocket): void {
  if (socket instanceof Socket) socket.setTimeout(stalledMs);
}

export function allowSilence(socket: MaybeSocket): void {
  if (socket instanceof Socket) socket.setTimeout(0);
}
