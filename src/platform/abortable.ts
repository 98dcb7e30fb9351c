/** Settles as `work` does, or rejects with the signal's reason as soon as it aborts; `work` itself goes on. */
export async function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let abort = () => {};
  const aborted = new Promise<never>((_resolve, reject) => {
    abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
  });
  try {
    // Also where it is aborted already: work that nobody waits for may fail later.
    return await Promise.race([aborted, work]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/**
 * Settles as `work` does, or rejects after `ms` milliseconds with an error that says that `what` did not answer;
 * `work` itself goes on.
 */
export async function within<T>(work: Promise<T>, { ms, what }: { ms: number; what: string }): Promise<T> {
  const timeout = AbortSignal.timeout(ms);
  try {
    return await abortable(work, timeout);
  } catch (error) {
    if (error !== timeout.reason) throw error;
    throw new Error(`${what} did not answer within ${ms / 1_000} s`, { cause: error });
  }
}
