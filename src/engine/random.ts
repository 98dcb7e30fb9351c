/**
 * xoshiro128** (Blackman and Vigna, "Scrambled Linear Pseudorandom Number Generators", 2021), seeded through
 * SplitMix32 so that neighbouring seeds and streams share nothing. Not for secrets.
 */
export class Random {
  readonly #state = new Uint32Array(4);

  /** `stream` separates generators that share a seed. Both are integers; 64 bits of the seed count. */
  constructor(seed: number, stream: number) {
    let mix = Math.imul(stream + 1, 0x9e3779b9);
    for (const word of [seed, Math.floor(seed / 2 ** 32)]) mix = scramble(mix ^ word) + 0x9e3779b9;
    for (let index = 0; index < 4; index++) {
      mix = (mix + 0x9e3779b9) | 0;
      this.#state[index] = scramble(mix);
    }
  }

  /** Uniform in [0, 1), with 53 random bits. */
  next(): number {
    const high = this.#word() >>> 5;
    const low = this.#word() >>> 6;
    return (high * 2 ** 26 + low) / 2 ** 53;
  }

  #word(): number {
    const s = this.#state;
    const result = Math.imul(rotate(Math.imul(s[1]!, 5), 7), 9) >>> 0;
    const shifted = s[1]! << 9;
    s[2]! ^= s[0]!;
    s[3]! ^= s[1]!;
    s[1]! ^= s[2]!;
    s[0]! ^= s[3]!;
    s[2]! ^= shifted;
    s[3] = rotate(s[3]!, 11);
    return result;
  }
}

function rotate(word: number, by: number): number {
  return (word << by) | (word >>> (32 - by));
}

/** The finalizer of MurmurHash3, as in SplitMix32. */
function scramble(word: number): number {
  let mixed = word ^ (word >>> 16);
  mixed = Math.imul(mixed, 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
