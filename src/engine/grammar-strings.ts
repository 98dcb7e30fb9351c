import { bytesOfToken, type StringRule, secretBytes, type Vocabulary } from './grammar.js';

const quote = 0x22;
const backslash = 0x5c;

/** A JSON string as its bytes come, from behind its opening quote. */
export class StringProgress {
  readonly rule: StringRule;
  /** Code points so far; one that has begun counts. */
  length = 0;
  /** Bytes that still belong to an escape sequence; -1 right after the backslash. */
  #escape = 0;
  readonly #body: number[] = [];

  constructor(rule: StringRule) {
    this.rule = rule;
  }

  clone(): StringProgress {
    const clone = new StringProgress(this.rule);
    clone.length = this.length;
    clone.#escape = this.#escape;
    for (const byte of this.#body) clone.#body.push(byte);
    return clone;
  }

  /** Takes a byte; true when it is the closing quote. */
  push(byte: number): boolean {
    if (this.#escape === 0 && byte === quote) return true;
    this.#body.push(byte);
    if (this.#escape === -1) this.#escape = byte === 0x75 ? 4 : 0;
    else if (this.#escape > 0) this.#escape--;
    else {
      if (byte === backslash) this.#escape = -1;
      if ((byte & 0xc0) !== 0x80) this.length++;
    }
    return false;
  }

  /** Whether the bytes so far are whole characters. */
  get isWhole(): boolean {
    const tail = this.#body.slice(-4);
    const lead = tail.findLastIndex((byte) => (byte & 0xc0) !== 0x80);
    const first = tail[lead] ?? 0;
    const expected = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
    return this.#escape === 0 && (lead === -1 || tail.length - lead === expected);
  }

  /** Whether the rule lets the string end here. */
  get mayEnd(): boolean {
    const { minLength, maxLength } = this.rule;
    return this.isWhole && this.length >= minLength && this.length <= maxLength && !this.isExcluded;
  }

  /** Whether the text so far is one that the string must not be. */
  get isExcluded(): boolean {
    const { excluded } = this.rule;
    if (excluded.length === 0 || !this.isWhole) return false;
    const text: string = JSON.parse(`"${Buffer.from(this.#body).toString('utf8')}"`);
    return excluded.includes(text);
  }
}

/** What the tokens of a vocabulary do to a JSON string. Bit masks have one bit per token, lowest first. */
export class StringTokens {
  /** Tokens with a character of markers or seals. */
  readonly secret: Int32Array;
  /** Tokens with a quote before their end: they may open a string and go on in it. */
  readonly crossing: readonly number[];
  /** Tokens that are not whole characters of a string's body, each as it is. */
  readonly odd: readonly number[];
  /** Tokens that are. */
  readonly whole: readonly number[];
  /** Bytes of the longest token. */
  readonly longest: number;
  readonly #vocabulary: Vocabulary;
  /** Characters of each token that is whole characters of a string's body; 0 for the others. */
  readonly #lengths: Uint16Array;
  readonly #longer: Int32Array[] = [];

  constructor(vocabulary: Vocabulary) {
    const { ends, size } = vocabulary;
    this.#vocabulary = vocabulary;
    this.secret = new Int32Array(Math.ceil(size / 32));
    this.#lengths = new Uint16Array(ends.length);
    const crossing: number[] = [];
    const odd: number[] = [];
    const whole: number[] = [];
    let longest = 0;
    for (let token = 0; token < ends.length; token++) {
      const bytes = bytesOfToken(vocabulary, token);
      longest = Math.max(longest, bytes.length);
      this.#lengths[token] = bodyLength(bytes);
      if (this.#lengths[token]! > 0) whole.push(token);
      else if (bytes.length > 0) odd.push(token);
      if (bytes.some((byte) => secretBytes.includes(byte))) this.secret[token >> 5]! |= 1 << (token & 31);
      const first = bytes.indexOf(quote);
      if (first !== -1 && first < bytes.length - 1) crossing.push(token);
    }
    this.crossing = crossing;
    this.odd = odd;
    this.whole = whole;
    this.longest = longest;
  }

  bytesOf(token: number): Uint8Array {
    return bytesOfToken(this.#vocabulary, token);
  }

  /** Tokens of more than `characters` whole characters of a string's body. */
  longerThan(characters: number): Int32Array {
    let mask = this.#longer[characters];
    if (mask === undefined) {
      mask = new Int32Array(this.secret.length);
      for (let token = 0; token < this.#lengths.length; token++) {
        if (this.#lengths[token]! > characters) mask[token >> 5]! |= 1 << (token & 31);
      }
      this.#longer[characters] = mask;
    }
    return mask;
  }
}

/** Characters, where the bytes are whole characters that stand for themselves in a JSON string; otherwise 0. */
function bodyLength(bytes: Uint8Array): number {
  let length = 0;
  let continuing = 0;
  for (const byte of bytes) {
    if (byte < 0x20 || byte === quote || byte === backslash) return 0;
    if ((byte & 0xc0) === 0x80) {
      if (continuing-- === 0) return 0;
      continue;
    }
    if (continuing > 0) return 0;
    continuing = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : byte >= 0xc0 ? 1 : 0;
    length++;
  }
  return continuing === 0 ? length : 0;
}
