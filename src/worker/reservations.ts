import { ServiceError } from '../contract/errors.js';
import { limitError } from '../contract/limit-error.js';
import type { Limits } from '../contract/limits.js';
import { abortable } from '../platform/abortable.js';
import type { Database } from '../platform/database/database.js';
import type { HeldRequest } from './held-request.js';

/** A client waits: when the database takes longer, it is away. */
const raiseTimeoutMs = 5_000;

interface Answer {
  readonly refused: 'tpm' | 'tpd' | 'gone' | null;
  readonly at: Date;
}

/**
 * Sees to it that no request uses more tokens than its account has set aside for it. The API process estimated them;
 * here they are counted. Most estimates are large enough, and cost nothing more.
 */
export class Reservations {
  readonly #database: Pick<Database, 'query'>;
  readonly #limits: Limits;
  readonly #now: () => Date | null;

  /**
   * @param options.limits The model's own limits, for where the account has none.
   * @param options.now The time to count by; null, the default, is the database's clock.
   */
  constructor(options: { database: Pick<Database, 'query'>; limits: Limits; now?: () => Date | null }) {
    const { database, limits, now = () => null } = options;
    this.#database = database;
    this.#limits = limits;
    this.#now = now;
  }

  /**
   * To be called before a request uses `tokens` in all, prompt and completions at their longest.
   * @throws ServiceError tpmLimit or tpdLimit when the account has not so many left, overloaded when that cannot be
   *   told or nobody waits for the request any more; the reason of the request's signal when it ends meanwhile.
   */
  async cover(request: HeldRequest, tokens: number): Promise<void> {
    const { job, reservedTokens } = request;
    if (reservedTokens === undefined || job.caller === undefined || tokens <= reservedTokens) return;
    const { tpm = null, tpd = null } = this.#limits;
    const raising = this.#database.query<Answer>({
      name: 'raise_reservation',
      text: 'SELECT * FROM raise_reservation($1, $2, $3, $4, $5, $6, $7)',
      values: [job.caller.accountId, job.model, job.id, tokens, this.#now(), tpm, tpd],
    });
    const [answer] = await abortable(raising, AbortSignal.timeout(raiseTimeoutMs)).catch((cause) => {
      throw new ServiceError('overloaded', undefined, { cause });
    });
    request.signal.throwIfAborted();
    const { refused, at } = answer!;
    if (refused === 'gone') throw new ServiceError('overloaded');
    if (refused !== null) throw limitError(refused, at);
    request.reservedTokens = tokens;
  }
}
