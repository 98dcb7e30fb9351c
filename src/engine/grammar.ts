/** What a completion must look like, beyond what the model would write by itself. */
export interface Grammar {
  /** EBNF as xgrammar reads it; the rule `root` is the whole text. */
  readonly ebnf: string;
  /** What the strings marked in `ebnf` must hold to besides; see {@link stringMarker}. */
  readonly strings: readonly StringRule[];
}

/**
 * What a grammar cannot say of a JSON string without a state for every character: how many characters (code points)
 * it has, and which texts it must not be.
 *
 * In the grammar such a string is `"\"" (MARKER | CONTENT "\"" SEAL)`. Neither marker nor seal is ever part of a text:
 * that the matcher takes a marker tells that the string may have begun, and the seal is shown to it, in secret, when
 * the string has ended as its rule wants it. What begins alike but has no rule (a constant) goes on without the seal.
 */
export interface StringRule {
  readonly minLength: number;
  readonly maxLength: number;
  /** Texts, unescaped, that the string must not be. */
  readonly excluded: readonly string[];
  /** Whether the content may end after any character, as far as the grammar goes. */
  readonly endsAnywhere: boolean;
}

/** Tells that the matcher stands right behind the opening quote of a string under rule `index`. */
export function stringMarker(index: number): string {
  return `\u0001${index}\u0002`;
}

/** Stands behind the closing quote of every string that has a rule. */
export const stringSeal = '\u0003';

/** No token with one of these is drawn under a grammar with rules: only markers and seals have them. */
export const secretBytes: readonly number[] = [1, 2, 3];

/** The tokens of a model, as grammars see them. */
export interface Vocabulary {
  /** The bytes of all tokens, one after the other; a token that stands for no text has none. */
  readonly bytes: Uint8Array;
  /** Where each token's bytes end. */
  readonly ends: Int32Array;
  /** Logits of the model: at least as many as there are tokens. */
  readonly size: number;
  /** A text may end with one of these where its grammar lets it; elsewhere they are not drawn. */
  readonly endTokens: readonly number[];
}

/** The bytes of one token. */
export function bytesOfToken({ bytes, ends }: Vocabulary, token: number): Uint8Array {
  return bytes.subarray(token === 0 ? 0 : ends[token - 1]!, ends[token]!);
}

/** Follows one text through its grammar. To be disposed once. */
export interface GrammarFollower {
  /** One bit per token, lowest first: whether the token may come next. */
  allowed(): Promise<Int32Array>;
  /** Takes the token that was drawn. @throws Error when the grammar does not allow it. */
  accept(token: number): void;
  dispose(): void;
}

/** Where the engine gets followers from. */
export interface Grammars {
  /** Whether `follow` would not have to compile it first. */
  has(grammar: Grammar): boolean;
  /** @throws Error when the grammar cannot be compiled. */
  follow(grammar: Grammar): Promise<GrammarFollower>;
}
