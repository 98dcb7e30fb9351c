import type { Ending, HeldRequest } from './held-request.js';

/** The requests that a worker holds. */
export class HeldRequests {
  readonly #byId = new Map<string, HeldRequest>();
  #refusal: Ending | undefined;

  get held(): number {
    return this.#byId.size;
  }

  /** Requests past the queue of the engine. */
  get running(): number {
    let running = 0;
    for (const { admitted } of this.#byId.values()) if (admitted) running += 1;
    return running;
  }

  get(id: string): HeldRequest | undefined {
    return this.#byId.get(id);
  }

  /** A job that was lost and comes back takes the place of its earlier attempt, which is ending. */
  add(request: HeldRequest): void {
    this.#byId.set(request.job.id, request);
    if (this.#refusal !== undefined) request.end(this.#refusal);
  }

  remove(request: HeldRequest): void {
    if (this.#byId.get(request.job.id) === request) this.#byId.delete(request.job.id);
  }

  /** Ends the requests that an API process waits for. */
  endThoseOf(apiId: string, ending: Ending): void {
    for (const request of this.#byId.values()) if (request.job.replyTo === apiId) request.end(ending);
  }

  /** Ends every request, and at once those that are still handed out; `refusal` is what the latter are told. */
  endAll(endingOf: (request: HeldRequest) => Ending, refusal: Ending): void {
    this.#refusal = refusal;
    for (const request of this.#byId.values()) request.end(endingOf(request));
  }
}
