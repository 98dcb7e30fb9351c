import type { Grammar, GrammarFollower, Grammars, Vocabulary } from './grammar.js';
import { GrammarCompiler } from './grammar-compiler.js';
import type { CompiledGrammar, GrammarMatcher } from './grammar-library.js';
import { StringTokens } from './grammar-strings.js';
import { GrammarText } from './grammar-text.js';

/** Grammars kept compiled, and the characters of EBNF they may have together: what they hold grows with both. */
const maxGrammars = 64;
const maxCharacters = 4_000_000;

/** The grammars of one engine, compiled when they are first asked for; those used last are kept. */
export class GrammarCache implements Grammars {
  readonly #vocabulary: Vocabulary;
  readonly #limits: { readonly maxGrammars: number; readonly maxCharacters: number };
  #compiler: Promise<GrammarCompiler> | undefined;
  #strings: StringTokens | undefined;
  /** By EBNF, the one used last at the end. */
  readonly #compiled = new Map<string, CompiledGrammar>();
  #characters = 0;

  constructor(
    vocabulary: Vocabulary,
    limits: { readonly maxGrammars?: number; readonly maxCharacters?: number } = {},
  ) {
    this.#vocabulary = vocabulary;
    this.#limits = { maxGrammars, maxCharacters, ...limits };
  }

  get size(): number {
    return this.#compiled.size;
  }

  /** Whether a grammar is kept compiled. */
  has({ ebnf }: Grammar): boolean {
    return this.#compiled.has(ebnf);
  }

  async follow(grammar: Grammar): Promise<GrammarFollower> {
    const matcher = await this.#match(grammar.ebnf);
    this.#strings ??= new StringTokens(this.#vocabulary);
    return new GrammarText(matcher, { vocabulary: this.#vocabulary, strings: this.#strings, grammar });
  }

  async #match(ebnf: string): Promise<GrammarMatcher> {
    this.#compiler ??= GrammarCompiler.open(this.#vocabulary);
    try {
      const compiler = await this.#compiler;
      let compiled = this.#compiled.get(ebnf);
      if (compiled === undefined) {
        compiled = await compiler.compile(ebnf);
        this.#characters += ebnf.length;
      }
      this.#compiled.delete(ebnf);
      this.#compiled.set(ebnf, compiled);
      const matcher = await compiler.match(compiled);
      this.#forgetOldest();
      return matcher;
    } catch (error) {
      // The library may have aborted: what it made is lost with it.
      this.#compiler = undefined;
      this.#compiled.clear();
      this.#characters = 0;
      throw new Error('A grammar cannot be compiled', { cause: error });
    }
  }

  #forgetOldest(): void {
    const limits = this.#limits;
    for (const [ebnf, compiled] of this.#compiled) {
      if (this.#compiled.size <= limits.maxGrammars && this.#characters <= limits.maxCharacters) return;
      if (this.#compiled.size === 1) return;
      this.#compiled.delete(ebnf);
      this.#characters -= ebnf.length;
      compiled.dispose();
    }
  }
}
