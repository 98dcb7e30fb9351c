import { bytesOfToken, type Vocabulary } from './grammar.js';
import {
  type CompiledGrammar,
  type GrammarCompiler as Compiler,
  type GrammarLibrary,
  type GrammarMatcher,
  loadGrammarLibrary,
  type TokenizerInfo,
} from './grammar-library.js';

/** Compiles grammars for one vocabulary. What it makes lives in WebAssembly memory and is to be disposed. */
export class GrammarCompiler {
  readonly #library: GrammarLibrary;
  readonly #tokens: TokenizerInfo;
  readonly #compiler: Compiler;

  private constructor(library: GrammarLibrary, tokens: TokenizerInfo, compiler: Compiler) {
    this.#library = library;
    this.#tokens = tokens;
    this.#compiler = compiler;
  }

  static async open(vocabulary: Vocabulary): Promise<GrammarCompiler> {
    const library = await loadGrammarLibrary();
    const spellings = Array.from(vocabulary.ends, (_, token) => spell(bytesOfToken(vocabulary, token)));
    const tokens = await library.TokenizerInfo.createTokenizerInfo(
      spellings,
      'byte_level',
      false,
      vocabulary.size,
      [...vocabulary.endTokens],
    );
    return new GrammarCompiler(
      library,
      tokens,
      await library.GrammarCompiler.createGrammarCompiler(tokens, false),
    );
  }

  /** @throws Error when `ebnf` is not a grammar; the compiler is of no use after that. */
  async compile(ebnf: string): Promise<CompiledGrammar> {
    const grammar = await this.#library.Grammar.fromEBNF(ebnf);
    try {
      const compiled = await this.#compiler.compileGrammar(grammar);
      // The library asks for it with each matcher and never frees the answer.
      compiled.tokenizerInfo = () => this.#tokens;
      return compiled;
    } finally {
      grammar.dispose();
    }
  }

  /** A matcher at the beginning of a text; it outlives `compiled`. */
  match(compiled: CompiledGrammar): Promise<GrammarMatcher> {
    return this.#library.GrammarMatcher.createGrammarMatcher(compiled);
  }
}

/** Bytes in the alphabet of byte-level vocabularies (GPT-2), in which any bytes are a string. */
function spell(bytes: Uint8Array): string {
  let spelling = '';
  for (const byte of bytes) spelling += alphabet[byte];
  return spelling;
}

const alphabet: readonly string[] = (() => {
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => {
    const isPrintable =
      (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
    return String.fromCharCode(isPrintable ? byte : next++);
  });
})();
