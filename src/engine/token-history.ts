const shortestMatch = 2;

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
   * many as tokens that agree, and none when fewer than two do: the longer the agreement, the surer what follows. What is
   * wanted beyond the end of the history is a repetition of what is between the place and the end.
   */
  draft(most: number): Int32Array {
    const tokens = this.#tokens;
    const end = this.#length - 1;
    let longest = shortestMatch - 1;
    let found = -1;
    for (let place = end - 1; place >= 0 && longest < most; place--) {
      if (tokens[place] !== tokens[end]) continue;
      let match = 1;
      while (match < most && match <= place && tokens[place - match] === tokens[end - match]) match++;
      if (match > longest) {
        longest = match;
        found = place;
      }
    }
    if (found === -1) return new Int32Array(0);
    const draft = new Int32Array(Math.min(longest, most));
    for (let at = 0; at < draft.length; at++) draft[at] = tokens[found + 1 + (at % (end - found))]!;
    return draft;
  }
}
