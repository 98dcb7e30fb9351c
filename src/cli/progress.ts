import cliProgress from 'cli-progress';
import { LineProgress } from '../platform/line-progress.js';
import type { Terminal } from './client/terminal.js';

/** Shows how far a long piece of work is: a bar on a terminal, a few lines elsewhere. */
export interface Progress {
  /** `task` is done to `share`, 0..1. Another task than before ends the one before. */
  update(task: string, share: number): void;
  /** Ends the task under way. */
  end(): void;
}

export function createProgress({ stderr }: Terminal): Progress {
  return stderr.isTTY ? new BarProgress(stderr) : new LineProgress((line) => stderr.write(`${line}\n`));
}

class BarProgress implements Progress {
  readonly #bar: cliProgress.SingleBar;
  #task: string | undefined;

  constructor(stream: NodeJS.WritableStream) {
    this.#bar = new cliProgress.SingleBar({
      stream,
      format: '{task}  {bar} {percentage}%',
      barCompleteChar: '█',
      barIncompleteChar: '░',
      barsize: 30,
      hideCursor: true,
      // Until it is ended by `end`, which a failure also reaches.
      stopOnComplete: false,
      gracefulExit: false,
    });
  }

  update(task: string, share: number): void {
    if (task !== this.#task) {
      this.end();
      this.#task = task;
      this.#bar.start(1, 0, { task });
    }
    this.#bar.update(share);
  }

  end(): void {
    if (this.#task !== undefined) this.#bar.stop();
    this.#task = undefined;
  }
}
