export interface TimedFetchOptions {
  readonly signal: AbortSignal;
  /** How long an answer may take to begin, connecting included. */
  readonly answerMs: number;
  /** How long a body may pause. */
  readonly pauseMs: number;
  /** Sent to `origin` and nowhere else. */
  readonly token?: string;
  readonly origin: string;
}

/** A `fetch` that gives up on silence, so that a network that swallows packets fails within seconds. */
export function timedFetch({ signal, answerMs, pauseMs, token, origin }: TimedFetchOptions): typeof fetch {
  return async (input, init) => {
    const silence = new AbortController();
    const giveUp = (ms: number) => () => silence.abort(new Error(`no answer within ${ms / 1000} s`));
    const headers = new Headers(init?.headers);
    const url = new URL(input instanceof Request ? input.url : input);
    if (token && url.origin === new URL(origin).origin) {
      headers.set('authorization', `Bearer ${token}`);
    }
    const beginning = setTimeout(giveUp(answerMs), answerMs);
    let response: Response;
    try {
      response = await fetch(input, {
        ...init,
        headers,
        signal: AbortSignal.any([signal, silence.signal]),
      });
    } finally {
      clearTimeout(beginning);
    }
    if (!response.body) {
      return response;
    }
    const pause = setTimeout(giveUp(pauseMs), pauseMs).unref();
    const body = response.body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          pause.refresh();
          controller.enqueue(chunk);
        },
        flush: () => clearTimeout(pause),
      }),
    );
    const { status, statusText, headers: answered } = response;
    return new Response(body, { status, statusText, headers: answered });
  };
}
