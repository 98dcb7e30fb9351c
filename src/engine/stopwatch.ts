/** Milliseconds since the start, by what they went into. */
export class Stopwatch<Part extends string> {
  readonly #spentMs: Record<Part, number>;

  constructor(parts: readonly Part[]) {
    this.#spentMs = Object.fromEntries(parts.map((part) => [part, 0])) as Record<Part, number>;
  }

  get spentMs(): Record<Part, number> {
    return { ...this.#spentMs };
  }

  time<T>(part: Part, work: () => T): T {
    const started = performance.now();
    const stop = () => {
      this.#spentMs[part] += performance.now() - started;
    };
    const result = work();
    if (result instanceof Promise) return result.finally(stop) as T;
    stop();
    return result;
  }
}
