import type { KvFormat } from '../models/manifest.js';
import type { DecoderShape } from './decoder-runner.js';
import { KvPlane } from './kv-plane.js';

export type KvShape = Pick<DecoderShape, 'layers' | 'kvHeads' | 'headSize' | 'kvFormat'>;

/** Where new positions go: `position` and those behind it, of head `block` of all rows' heads in a row. */
export interface KvPlace {
  readonly block: number;
  readonly position: number;
  readonly tokens: number;
  readonly capacity: number;
}

/** Keys and values of one layer, as they are kept between runs. */
export interface KvLayer {
  readonly planes: readonly KvPlane[];
  /** Puts the new positions of a head, [tokens, headSize] from element `from` on, in their place. */
  append(keys: Float32Array, values: Float32Array, from: number, place: KvPlace): void;
}

/** Bytes that one position of one row takes over all layers. */
export function bytesPerPosition({ layers, kvHeads, headSize, kvFormat }: KvShape): number {
  return layers * kvHeads * 2 * bytesPerVector[kvFormat](headSize);
}

const bytesPerVector: Record<KvFormat, (headSize: number) => number> = {
  float32: (headSize) => headSize * Float32Array.BYTES_PER_ELEMENT,
  int8: (headSize) => headSize + Float32Array.BYTES_PER_ELEMENT,
};

/** A layer with room for `positions` positions over all its rows. */
export function createKvLayer(shape: KvShape, positions: number): KvLayer {
  return shape.kvFormat === 'int8' ? new Int8KvLayer(shape, positions) : new Float32KvLayer(shape, positions);
}

/** Below this many elements a loop is quicker than making two views. */
const shortCopy = 128;

class Float32KvLayer implements KvLayer {
  readonly planes: readonly [keys: KvPlane, values: KvPlane];
  readonly #headSize: number;

  constructor({ kvHeads, headSize }: KvShape, positions: number) {
    this.#headSize = headSize;
    const plane = (name: 'key' | 'value') =>
      new KvPlane(
        {
          name,
          type: 'float32',
          kvHeads,
          lines: 1,
          unit: headSize,
          head: (capacity) => [capacity, headSize],
        },
        positions,
      );
    this.planes = [plane('key'), plane('value')];
  }

  append(keys: Float32Array, values: Float32Array, from: number, place: KvPlace): void {
    const elements = place.tokens * this.#headSize;
    const to = (place.block * place.capacity + place.position) * this.#headSize;
    for (const [index, source] of [keys, values].entries()) {
      const target = this.planes[index]!.array as Float32Array;
      if (elements > shortCopy) {
        target.set(source.subarray(from, from + elements), to);
      } else {
        for (let at = 0; at < elements; at++) target[to + at] = source[from + at]!;
      }
    }
  }
}

/** What stands for 0. */
const zeroPoint = 128;

/**
 * Keys and values in 8 bits, each vector with a scale of its own: its largest magnitude becomes 127. Keys are kept
 * with positions last, [headSize, capacity], as the right side of an integer product wants them.
 */
class Int8KvLayer implements KvLayer {
  readonly planes: readonly [keys: KvPlane, keyScales: KvPlane, values: KvPlane, valueScales: KvPlane];
  readonly #headSize: number;

  constructor({ kvHeads, headSize }: KvShape, positions: number) {
    this.#headSize = headSize;
    const scales = (name: 'key_scale' | 'value_scale') =>
      new KvPlane(
        { name, type: 'float32', kvHeads, lines: 1, unit: 1, head: (capacity) => [1, capacity] },
        positions,
      );
    this.planes = [
      new KvPlane(
        {
          name: 'key',
          type: 'uint8',
          kvHeads,
          lines: headSize,
          unit: 1,
          head: (capacity) => [headSize, capacity],
        },
        positions,
      ),
      scales('key_scale'),
      new KvPlane(
        {
          name: 'value',
          type: 'uint8',
          kvHeads,
          lines: 1,
          unit: headSize,
          head: (capacity) => [capacity, headSize],
        },
        positions,
      ),
      scales('value_scale'),
    ];
  }

  append(keys: Float32Array, values: Float32Array, from: number, place: KvPlace): void {
    const { block, position, tokens, capacity } = place;
    const [keyPlane, keyScales, valuePlane, valueScales] = this.planes;
    const size = this.#headSize;
    for (let token = 0; token < tokens; token++) {
      const at = block * capacity + position + token;
      const source = from + token * size;
      const keyAt = block * size * capacity + position + token;
      keyScales.array[at] = quantize(keys, source, size, keyPlane.array, keyAt, capacity);
      valueScales.array[at] = quantize(values, source, size, valuePlane.array, at * size, 1);
    }
  }
}

/** Writes a vector to every `stride`-th element of `target`; returns its scale. */
function quantize(
  source: Float32Array,
  from: number,
  size: number,
  target: Float32Array | Uint8Array,
  to: number,
  stride: number,
): number {
  let largest = 0;
  for (let index = from; index < from + size; index++) {
    const magnitude = Math.abs(source[index]!);
    if (magnitude > largest) largest = magnitude;
  }
  const inverse = largest > 0 ? 127 / largest : 0;
  // What is written loses its fraction, so half a step more rounds it.
  const offset = zeroPoint + 0.5;
  for (let index = 0; index < size; index++) {
    target[to + index * stride] = source[from + index]! * inverse + offset;
  }
  return largest / 127;
}
