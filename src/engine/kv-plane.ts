/** How a plane of the cache keeps a head's positions. */
export interface KvPlaneSettings {
  /** Key-value heads of a row. */
  readonly kvHeads: number;
  /** Numbers of a position of a head. */
  readonly headSize: number;
  readonly type: 'float32' | 'uint8';
  /** Whether positions are the last dimension, and so the numbers of one are `capacity` apart. */
  readonly positionsLast: boolean;
}

/** Some rows of a plane as the graph takes them: [rows, kvHeads, capacity, headSize], or with positions last. */
export interface KvTensor {
  readonly data: Float32Array | Uint8Array;
  readonly dims: readonly number[];
}

/** Where the first `tokens` new positions of one row of an output go: to `position` of `row` and those behind it. */
export interface KvPlace {
  readonly outputRow: number;
  readonly row: number;
  readonly position: number;
  readonly tokens: number;
}

/** What the cache keeps of one layer. */
export interface KvLayer<Part> {
  readonly keys: Part;
  readonly values: Part;
}

/** Whole vectors are moved four bytes at a time. */
const wordBytes = Int32Array.BYTES_PER_ELEMENT;

function wordsOf({ buffer, byteOffset, byteLength }: KvTensor['data']): Int32Array {
  return new Int32Array(buffer, byteOffset, byteLength / wordBytes);
}

const arrays = { float32: Float32Array, uint8: Uint8Array };

/** What the graph takes of `rows` rows without positions. */
export function emptyTensor(settings: KvPlaneSettings, rows: number): KvTensor {
  return { data: new arrays[settings.type](0), dims: dimsOf(settings, rows, 0) };
}

function dimsOf({ kvHeads, headSize, positionsLast }: KvPlaneSettings, rows: number, capacity: number) {
  return [rows, kvHeads, ...(positionsLast ? [headSize, capacity] : [capacity, headSize])];
}

/** Up to this many elements a loop is quicker than a call. */
const shortCopy = 48;

/**
 * Keys or values of one layer for all rows: [rows, kvHeads, lines, capacity, unit], without gaps at whatever capacity
 * it has, so that neighbouring rows are an input of the graph without a copy. With positions last every number of a
 * head has a line of its own; else all are in one.
 */
export class KvPlane {
  readonly #settings: KvPlaneSettings;
  readonly #array: Float32Array | Uint8Array;
  readonly #words: Int32Array;
  /** Lines of a head. A head's positions are neighbours in each of them. */
  readonly #lines: number;
  /** Elements that a position has in a line. */
  readonly #unit: number;
  #capacity = 0;

  /** The memory for `positions` is reserved now, but the system hands it out only as it is first written. */
  constructor(settings: KvPlaneSettings, positions: number) {
    const { kvHeads, headSize, positionsLast } = settings;
    this.#array = new arrays[settings.type](positions * kvHeads * headSize);
    this.#words = wordsOf(this.#array);
    this.#settings = settings;
    this.#lines = positionsLast ? headSize : 1;
    this.#unit = positionsLast ? 1 : headSize;
  }

  /** Bytes of one position of a row. */
  get bytesPerPosition(): number {
    return this.#settings.kvHeads * this.#settings.headSize * this.#array.BYTES_PER_ELEMENT;
  }

  /** Rows first..first+count-1; no copy. */
  view(first: number, count: number): KvTensor {
    const { kvHeads, headSize } = this.#settings;
    const stride = kvHeads * headSize * this.#capacity;
    return {
      data: this.#array.subarray(first * stride, (first + count) * stride),
      dims: dimsOf(this.#settings, count, this.#capacity),
    };
  }

  /**
   * Puts new positions of rows in their places.
   * @param source [rows, width, kvHeads, headSize]
   */
  append(source: KvTensor['data'], width: number, places: readonly KvPlace[]): void {
    const { kvHeads, headSize, positionsLast } = this.#settings;
    const lines = kvHeads * this.#lines;
    const capacity = this.#capacity;
    if (positionsLast) {
      for (const { row, outputRow, position, tokens } of places) {
        const to = row * lines * capacity + position;
        scatter(source, outputRow * width * lines, this.#array, { to, lines, stride: capacity, tokens });
      }
      return;
    }
    const words = wordsOf(source);
    const unit = (headSize * source.BYTES_PER_ELEMENT) / wordBytes;
    for (const { row, outputRow, position, tokens } of places) {
      const from = outputRow * width * kvHeads * unit;
      const to = (row * kvHeads * capacity + position) * unit;
      gather(words, from, this.#words, { to, heads: kvHeads, unit, stride: capacity * unit, tokens });
    }
  }

  /** Copies `count` positions of a row from or to `outside`, [kvHeads, lines, count, unit]. */
  copy(
    direction: 'out' | 'in',
    row: number,
    position: number,
    count: number,
    outside: KvTensor['data'],
  ): void {
    const lines = this.#settings.kvHeads * this.#lines;
    const unit = this.#unit;
    for (let line = 0; line < lines; line++) {
      const at = ((row * lines + line) * this.#capacity + position) * unit;
      const inner = this.#array.subarray(at, at + count * unit);
      const outer = outside.subarray(line * count * unit, (line + 1) * count * unit);
      if (direction === 'out') outer.set(inner);
      else inner.set(outer);
    }
  }

  /** The bytes of `count` positions from `offset` on, as `copy` takes them. */
  over(bytes: ArrayBuffer, offset: number, count: number): KvTensor['data'] {
    const length = count * this.#settings.kvHeads * this.#settings.headSize;
    return new arrays[this.#settings.type](bytes, offset, length);
  }

  /** Makes row `to` hold the first `length` positions of row `from`. */
  copyRow(from: number, to: number, length: number): void {
    const lines = this.#settings.kvHeads * this.#lines;
    const lineElements = this.#capacity * this.#unit;
    for (let line = 0; line < lines; line++) {
      const source = (from * lines + line) * lineElements;
      this.#move(source, (to * lines + line) * lineElements, length * this.#unit);
    }
  }

  /** Moves `lengths[row]` positions of each row to their place under a new capacity. */
  resize(capacity: number, lengths: ArrayLike<number>): void {
    const unit = this.#unit;
    const old = this.#capacity;
    this.#capacity = capacity;
    const lines = this.#settings.kvHeads * this.#lines;
    // In an order in which no line overwrites another that has yet to move.
    const move = (row: number, line: number) =>
      this.#move(
        (row * lines + line) * old * unit,
        (row * lines + line) * capacity * unit,
        lengths[row]! * unit,
      );
    if (capacity > old) {
      for (let row = lengths.length - 1; row >= 0; row--) {
        if (lengths[row] === 0) continue;
        for (let line = lines - 1; line >= 0; line--) move(row, line);
      }
    } else {
      for (let row = 0; row < lengths.length; row++) {
        if (lengths[row] === 0) continue;
        for (let line = 0; line < lines; line++) move(row, line);
      }
    }
  }

  #move(from: number, to: number, elements: number): void {
    if (from === to) return;
    const array = this.#array;
    if (elements > shortCopy) {
      array.copyWithin(to, from, from + elements);
    } else if (to > from) {
      for (let index = elements - 1; index >= 0; index--) array[to + index] = array[from + index]!;
    } else {
      for (let index = 0; index < elements; index++) array[to + index] = array[from + index]!;
    }
  }
}

/** Puts the numbers of positions, `lines` of each, in lines that are `stride` apart. */
function scatter(
  source: KvTensor['data'],
  from: number,
  target: KvTensor['data'],
  { to, lines, stride, tokens }: { to: number; lines: number; stride: number; tokens: number },
): void {
  for (let line = 0; line < lines; line++) {
    const start = to + line * stride;
    let at = from + line;
    for (let end = start + tokens, place = start; place < end; place++) {
      target[place] = source[at]!;
      at += lines;
    }
  }
}

/** Puts the vectors of positions, one for each head, behind those of their heads, which begin `stride` apart. */
function gather(
  source: Int32Array,
  from: number,
  target: Int32Array,
  {
    to,
    heads,
    unit,
    stride,
    tokens,
  }: { to: number; heads: number; unit: number; stride: number; tokens: number },
): void {
  let at = from;
  for (let token = 0; token < tokens; token++) {
    for (let head = 0; head < heads; head++) {
      const start = to + head * stride + token * unit;
      for (let place = start; place < start + unit; place++) target[place] = source[at++]!;
    }
  }
}
