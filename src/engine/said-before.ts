/** Tokens of a scope that are kept at least, of those that were said last; at most twice as many. */
const tokensOfScope = 8_192;
/** Scopes whose texts are kept: those that said something last. */
const maxScopes = 16;
/** Tokens of a prompt that are kept before what it led to, so that it is found again when the same is asked. */
const tokensOfPrompt = 16;

/** What choices have said that ended lately, by the scope of their requests: others of it may say the same. */
export class SaidBefore {
  readonly #scopes = new Map<string, Texts>();

  /** Keeps what a choice of `scope` has said: `tokens`, of which the first `promptLength` are its prompt. */
  keep(scope: string, tokens: Int32Array, promptLength: number): void {
    if (tokens.length === promptLength) return;
    const texts = this.#scopes.get(scope) ?? new Texts();
    this.#scopes.delete(scope);
    this.#scopes.set(scope, texts);
    if (this.#scopes.size > maxScopes) this.#scopes.delete(this.#scopes.keys().next().value!);
    texts.add(tokens.subarray(Math.max(0, promptLength - tokensOfPrompt)));
  }

  /** The texts of a scope, the latest last, each with -1 after it. The same until another is kept. */
  of(scope: string): Int32Array {
    return this.#scopes.get(scope)?.tokens ?? new Int32Array(0);
  }
}

/** Texts one after the other, of which the oldest make room for the latest. */
class Texts {
  readonly #all = new Int32Array(2 * tokensOfScope);
  #length = 0;

  get tokens(): Int32Array {
    return this.#all.subarray(0, this.#length);
  }

  add(text: Int32Array): void {
    const added = text.subarray(-(tokensOfScope - 1));
    if (this.#length + added.length + 1 > this.#all.length) {
      this.#all.copyWithin(0, this.#length - tokensOfScope, this.#length);
      this.#length = tokensOfScope;
    }
    this.#all.set(added, this.#length);
    this.#length += added.length;
    this.#all[this.#length++] = -1;
  }
}
