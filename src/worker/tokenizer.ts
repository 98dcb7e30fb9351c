import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Decoder, Tokenizer as NativeTokenizer } from 'tokenizers';
import { compiledFiles } from '../models/manifest.js';
import { byteLevelBytes } from './byte-level.js';
import type { SequenceFormat } from './sequence-format.js';
import type { SpecialTokens } from './special-tokens.js';
import { type ByteCoding, readTokenizerFile } from './tokenizer-file.js';

const byteToken = /^<0x([0-9A-Fa-f]{2})>$/;

/**
 * A model's tokenizer. Text becomes control tokens only where `specials.mark` has put their names; whatever looks
 * like one and is not so marked is ordinary text. Encoding runs outside the main thread.
 */
export class Tokenizer {
  readonly #native: NativeTokenizer;
  readonly #decoder: Decoder | null;
  readonly #byteCoding: ByteCoding;
  readonly specials: SpecialTokens;
  /** How encoders of this model want their input. */
  readonly format: SequenceFormat;

  /** @throws Error when `json` is not a `tokenizer.json` of the Hugging Face tokenizers library. */
  constructor(json: string) {
    const file = readTokenizerFile(json);
    this.#native = NativeTokenizer.fromString(file.json);
    this.#decoder = this.#native.getDecoder();
    this.#byteCoding = file.byteCoding;
    this.specials = file.specials;
    this.format = file.format;
  }

  /** The tokenizer of a compiled model's folder. */
  static async load(folder: string): Promise<Tokenizer> {
    return new Tokenizer(await readFile(join(folder, compiledFiles.tokenizer), 'utf8'));
  }

  /** Control tokens that the tokenizer puts before every text by itself; often none. */
  tokensBefore(): Int32Array {
    const text = -1;
    const { tokens } = this.format.single(Int32Array.of(text));
    return tokens.subarray(0, tokens.indexOf(text));
  }

  async encode(text: string): Promise<Int32Array> {
    const encoding = await this.#native.encode(text, null, { addSpecialTokens: false });
    return Int32Array.from(encoding.getIds());
  }

  async encodeBatch(texts: readonly string[]): Promise<Int32Array[]> {
    const encodings = await this.#native.encodeBatch([...texts], { addSpecialTokens: false });
    return encodings.map((encoding) => Int32Array.from(encoding.getIds()));
  }

  /** The token of a control token's published spelling; undefined when there is none. */
  specialToken(spelling: string): number | undefined {
    const name = this.specials.nameOf(spelling);
    return name === undefined ? undefined : (this.#native.tokenToId(name) ?? undefined);
  }

  /** A control token's published spelling; undefined when `token` is ordinary. */
  spellingOf(token: number): string | undefined {
    return this.specials.spellingOf(this.#native.idToToken(token) ?? '');
  }

  /**
   * The bytes that an ordinary token stands for, where it stands for bytes and not for text: every token of a
   * byte-level vocabulary, and the byte tokens (`<0x0A>`) of one with byte fallback.
   */
  bytesOf(token: number): Uint8Array | undefined {
    if (this.#byteCoding === 'none') return undefined;
    const content = this.#native.idToToken(token) ?? '';
    if (this.#byteCoding === 'byte-level') return byteLevelBytes(content);
    const byte = byteToken.exec(content)?.[1];
    return byte === undefined ? undefined : Uint8Array.of(Number.parseInt(byte, 16));
  }

  /** What a token stands for in the middle of a text, in bytes; for a control token, its published spelling. */
  describe(token: number): Uint8Array {
    const spelling = this.spellingOf(token);
    if (spelling !== undefined) return new TextEncoder().encode(spelling);
    return this.bytesOf(token) ?? new TextEncoder().encode(this.decodeAfter(token, token));
  }

  /** The text of `token` where `previous` stands before it; undefined at the start of a text. */
  decodeAfter(previous: number | undefined, token: number): string {
    if (previous === undefined) return this.decode([token]);
    return this.decode([previous, token]).slice(this.decode([previous]).length);
  }

  /** The text of ordinary tokens in a row, by the model's own decoder. Ids outside the vocabulary have none. */
  decode(tokens: readonly number[]): string {
    const contents = tokens.flatMap((token) => this.#native.idToToken(token) ?? []);
    return this.#decoder === null ? contents.join(' ') : this.#decoder.decode(contents);
  }
}
