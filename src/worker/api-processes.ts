import type { PresenceBoard } from '../platform/presence.js';

const maxRemembered = 1_000;

/**
 * The API processes that are known to have gone. One that was never heard of counts as there: it may be so new
 * that its first job is here before its first word.
 */
export class ApiProcesses {
  readonly #board: Pick<PresenceBoard, 'isAlive'>;
  readonly #gone = new Set<string>();
  readonly #stop: () => void;

  constructor(board: Pick<PresenceBoard, 'isAlive' | 'onGone'>, onGone: (apiId: string) => void) {
    this.#board = board;
    this.#stop = board.onGone(({ role, id }) => {
      if (role !== 'api') return;
      this.#remember(id);
      onGone(id);
    });
  }

  isGone(apiId: string): boolean {
    return this.#gone.has(apiId) && !this.#board.isAlive(apiId);
  }

  close(): void {
    this.#stop();
  }

  #remember(id: string): void {
    this.#gone.add(id);
    for (const oldest of this.#gone) {
      if (this.#gone.size <= maxRemembered) return;
      this.#gone.delete(oldest);
    }
  }
}
