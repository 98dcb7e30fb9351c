/** What a plane of the cache is made of. */
export interface KvPlaneSettings {
  /** The graph's input is `past.<layer>.<name>`. */
  readonly name: 'key' | 'value' | 'key_scale' | 'value_scale';
  readonly type: 'float32' | 'uint8';
  /** Key-value heads of a row. */
  readonly kvHeads: number;
  /** Lines of a head. A head's positions are neighbours in each of them. */
  readonly lines: number;
  /** Elements that a position has in a line. */
  readonly unit: number;
  /** The size of a head in the graph's dimensions, [rows, kvHeads, ...head(capacity)]. */
  readonly head: (capacity: number) => readonly [number, number];
}

/** A plane, or some of its rows, as the graph takes it. */
export interface KvTensor {
  readonly name: KvPlaneSettings['name'];
  readonly data: Float32Array | Uint8Array;
  readonly dims: readonly number[];
}

/** Below this many elements a loop is quicker than a call. */
const shortCopy = 48;

/**
 * One kind of number of one layer for all rows: [rows, kvHeads, lines, capacity, unit], without gaps at whatever
 * capacity it has, so that neighbouring rows are an input of the graph without a copy.
 */
export class KvPlane {
  readonly array: Float32Array | Uint8Array;
  readonly #settings: KvPlaneSettings;
  #capacity = 0;

  /** The memory for `positions` is reserved now, but the system hands it out only as it is first written. */
  constructor(settings: KvPlaneSettings, positions: number) {
    const { type, kvHeads, lines, unit } = settings;
    const elements = positions * kvHeads * lines * unit;
    this.array = type === 'float32' ? new Float32Array(elements) : new Uint8Array(elements);
    this.#settings = settings;
  }

  /** Rows first..first+count-1; no copy. */
  view(first: number, count: number): KvTensor {
    const { name, kvHeads, head } = this.#settings;
    const stride = this.#elementsOf(1);
    return {
      name,
      data: this.array.subarray(first * stride, (first + count) * stride),
      dims: [count, kvHeads, ...head(this.#capacity)],
    };
  }

  /** Bytes of one position of a row. */
  get bytesPerPosition(): number {
    const { kvHeads, lines, unit } = this.#settings;
    return kvHeads * lines * unit * this.array.BYTES_PER_ELEMENT;
  }

  /** Copies `count` positions of a row from or to `outside`, [kvHeads, lines, count, unit]. */
  copy(
    direction: 'out' | 'in',
    row: number,
    position: number,
    count: number,
    outside: KvTensor['data'],
  ): void {
    const { kvHeads, lines, unit } = this.#settings;
    for (let line = 0; line < kvHeads * lines; line++) {
      const at = ((row * kvHeads * lines + line) * this.#capacity + position) * unit;
      const inner = this.array.subarray(at, at + count * unit);
      const outer = outside.subarray(line * count * unit, (line + 1) * count * unit);
      if (direction === 'out') outer.set(inner);
      else inner.set(outer);
    }
  }

  /** Elements of `count` positions in `bytes` from `offset` on, as `copy` takes them. */
  over(bytes: ArrayBuffer, offset: number, count: number): KvTensor['data'] {
    const { kvHeads, lines, unit, type } = this.#settings;
    const length = kvHeads * lines * count * unit;
    return type === 'float32'
      ? new Float32Array(bytes, offset, length)
      : new Uint8Array(bytes, offset, length);
  }

  /** Makes row `to` hold the first `length` positions of row `from`. */
  copyRow(from: number, to: number, length: number): void {
    const { kvHeads, lines, unit } = this.#settings;
    const lineElements = this.#capacity * unit;
    for (let line = 0; line < kvHeads * lines; line++) {
      const source = (from * kvHeads * lines + line) * lineElements;
      this.#move(source, (to * kvHeads * lines + line) * lineElements, length * unit);
    }
  }

  /** Moves `lengths[row]` positions of each row to their place under a new capacity. */
  resize(capacity: number, lengths: ArrayLike<number>): void {
    const { kvHeads, lines, unit } = this.#settings;
    const old = this.#capacity;
    this.#capacity = capacity;
    const perRow = kvHeads * lines;
    // In an order in which no line overwrites another that has yet to move.
    const move = (row: number, line: number) =>
      this.#move(
        (row * perRow + line) * old * unit,
        (row * perRow + line) * capacity * unit,
        lengths[row]! * unit,
      );
    if (capacity > old) {
      for (let row = lengths.length - 1; row >= 0; row--) {
        if (lengths[row] === 0) continue;
        for (let line = perRow - 1; line >= 0; line--) move(row, line);
      }
    } else {
      for (let row = 0; row < lengths.length; row++) {
        if (lengths[row] === 0) continue;
        for (let line = 0; line < perRow; line++) move(row, line);
      }
    }
  }

  #elementsOf(rows: number): number {
    const { kvHeads, lines, unit } = this.#settings;
    return rows * kvHeads * lines * this.#capacity * unit;
  }

  #move(from: number, to: number, elements: number): void {
    if (from === to) return;
    const { array } = this;
    if (elements > shortCopy) {
      array.copyWithin(to, from, from + elements);
    } else if (to > from) {
      for (let index = elements - 1; index >= 0; index--) array[to + index] = array[from + index]!;
    } else {
      for (let index = 0; index < elements; index++) array[to + index] = array[from + index]!;
    }
  }
}
