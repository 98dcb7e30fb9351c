/** Fewer tokens agree by chance: within a sequence, and with other texts, of which there are more. */
const shortestAgreement = { own: 2, others: 3 };

const nothing = new Int32Array(0);

/**
 * What a choice has said so far, its prompt included, and what it may say next: text often repeats what was said before,
 * such as the code that a prompt asks to change, or the names in a summary. (Prompt lookup decoding: Saxena, 2023.)
 */
export class TokenHistory {
  #tokens: Int32Array;
  #length: number;

  constructor(prompt: Int32Array) {
    this.#tokens = prompt;
    this.#length = prompt.length;
  }

  /** The tokens, until another is pushed. */
  get tokens(): Int32Array {
    return this.#tokens.subarray(0, this.#length);
  }

  push(token: number): void {
    if (this.#length === this.#tokens.length) {
      const longer = new Int32Array(this.#length + Math.max(64, this.#length >> 1));
      longer.set(this.#tokens);
      this.#tokens = longer;
    }
    this.#tokens[this.#length++] = token;
  }

  /**
   * At most `most` tokens that may come next: those that came after an earlier place that ends as the history does now. Of
   * several such places it is the one that agrees in the most tokens, up to `most`, and of those the latest. There are as
   * many as tokens that agree: the longer the agreement, the surer what follows. What is wanted beyond the end of the
   * history is a repetition of what is between the place and the end.
   * @param others where to look besides for a place that agrees in more: other texts, a negative number after each
   */
  draft(most: number, others: Int32Array = nothing): Int32Array {
    const own = this.tokens;
    const here = agreement(own, own.length - 2, own, { least: shortestAgreement.own, most });
    const least = Math.max(shortestAgreement.others, here.length + 1);
    const there = agreement(others, others.length - 2, own, { least, most });
    if (there.length > 0) {
      const next = others.subarray(there.place + 1, there.place + 1 + there.length);
      const end = next.findIndex((token) => token < 0);
      return end === -1 ? next.slice() : next.slice(0, end);
    }
    const period = own.length - 1 - here.place;
    return Int32Array.from({ length: here.length }, (_, at) => own[here.place + 1 + (at % period)]!);
  }
}

/**
 * The latest place in `text`, from `from` on backwards, that agrees with the end of `tail` in the most tokens, `least` to
 * `most`, and is followed by another. The length is 0 when there is none.
 */
function agreement(
  text: Int32Array,
  from: number,
  tail: Int32Array,
  { least, most }: { readonly least: number; readonly most: number },
): { place: number; length: number } {
  const end = tail.length - 1;
  const deepest = Math.min(most, tail.length);
  let found = { place: -1, length: 0 };
  let wanted = least;
  for (let place = from; place >= 0 && wanted <= deepest; place--) {
    if (text[place] !== tail[end] || text[place + 1]! < 0) continue;
    let length = 1;
    while (length < deepest && length <= place && text[place - length] === tail[end - length]) length++;
    if (length >= wanted) {
      found = { place, length };
      wanted = length + 1;
    }
  }
  return found;
}
