/**
 * An orthogonal matrix Q that mixes every coordinate into every other, so that one large coordinate becomes many
 * small ones. For size = 2^k * m it is a Hadamard matrix of 2^k beside a cosine transform of m, after signs drawn
 * once and for all: without those a constant vector would become a single large coordinate.
 */
export class Rotation {
  readonly #size: number;
  /** The largest power of two that divides the size. */
  readonly #power: number;
  /** [size / power, size / power] */
  readonly #cosines: Float64Array;
  /** [size], scaled so that the whole is orthogonal. */
  readonly #signs: Float32Array;

  constructor(size: number) {
    this.#size = size;
    this.#power = size & -size;
    const rest = size / this.#power;
    this.#cosines = cosineTransform(rest);
    this.#signs = signs(size).map((sign) => sign / Math.sqrt(this.#power));
  }

  /**
   * Multiplies by Q in place: `data` is [n, size, inner], and each [size] along its middle axis becomes its product
   * with Q. With inner 1 the rows are multiplied, W * Q; with inner the row length, the columns: transpose(Q) * W.
   */
  apply(data: Float32Array, inner = 1): void {
    const block = this.#size * inner;
    for (let start = 0; start < data.length; start += block) {
      this.#sign(data, start, inner);
      this.#hadamard(data, start, inner);
      if (this.#power < this.#size) this.#cosine(data, start, inner);
    }
  }

  #sign(data: Float32Array, start: number, inner: number): void {
    for (let i = 0, at = start; i < this.#size; i++) {
      const sign = this.#signs[i]!;
      for (let end = at + inner; at < end; at++) data[at]! *= sign;
    }
  }

  #hadamard(data: Float32Array, start: number, inner: number): void {
    const whole = this.#size * inner;
    for (let half = whole / this.#power; half < whole; half *= 2) {
      for (let from = start; from < start + whole; from += 2 * half) {
        for (let at = from; at < from + half; at++) {
          const a = data[at]!;
          const b = data[at + half]!;
          data[at] = a + b;
          data[at + half] = a - b;
        }
      }
    }
  }

  #cosine(data: Float32Array, start: number, inner: number): void {
    const rest = this.#size / this.#power;
    const mixed = new Float64Array(rest);
    for (let from = start; from < start + this.#size * inner; from += rest * inner) {
      for (let column = from; column < from + inner; column++) {
        mixed.fill(0);
        for (let i = 0; i < rest; i++) {
          const value = data[column + i * inner]!;
          for (let j = 0; j < rest; j++) mixed[j]! += value * this.#cosines[i * rest + j]!;
        }
        for (let j = 0; j < rest; j++) data[column + j * inner] = mixed[j]!;
      }
    }
  }
}

/** The orthogonal cosine transform (DCT-II), [size, size]. */
function cosineTransform(size: number): Float64Array {
  const matrix = new Float64Array(size * size);
  for (let i = 0; i < size; i++) {
    for (let j = 0; j < size; j++) {
      const scale = Math.sqrt((j === 0 ? 1 : 2) / size);
      matrix[i * size + j] = scale * Math.cos((Math.PI * (2 * i + 1) * j) / (2 * size));
    }
  }
  return matrix;
}

/** Signs without a pattern, the same at every call: the top bits of a linear congruential generator. */
function signs(size: number): Float32Array {
  let state = 1;
  return new Float32Array(size).map(() => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state < 2 ** 31 ? 1 : -1;
  });
}
