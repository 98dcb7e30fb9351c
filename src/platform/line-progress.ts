/** Tells how far a long piece of work is in few lines: one when a task begins and one at each quarter. */
export class LineProgress {
  readonly #tell: (line: string) => void;
  #task: string | undefined;
  #quarters = 0;

  /** @param tell Gets each line, without a line break. */
  constructor(tell: (line: string) => void) {
    this.#tell = tell;
  }

  /** `task` is done to `share`, 0..1. Another task than before ends the one before. */
  update(task: string, share: number): void {
    const quarters = Math.floor(share * 4);
    if (task === this.#task && quarters <= this.#quarters) return;
    this.#task = task;
    this.#quarters = quarters;
    this.#tell(`${task}  ${quarters * 25}%`);
  }

  /** Ends the task under way. */
  end(): void {
    this.#task = undefined;
    this.#quarters = 0;
  }
}
