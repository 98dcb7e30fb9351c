import { halfTable } from '../float16.js';

/**
 * The block formats of 32 weights: a half-precision scale `d` (and minimum `m`), then the weights' small integers.
 * The layouts are ggml's `block_q4_0` ... `block_q8_0`. In the 4- and 5-bit ones byte j holds weight j in its lower
 * half and weight j + 16 in its upper. Each function fills `values`, 32 to a block of `bytes`.
 */

const half = (bytes: Uint8Array, at: number) => halfTable()[bytes[at]! | (bytes[at + 1]! << 8)]!;

/** d, 16 bytes of 4 bits: w = d (q - 8). */
export function dequantizeQ4_0(bytes: Uint8Array, values: Float32Array): void {
  for (let at = 0, to = 0; to < values.length; at += 18, to += 32) {
    const d = half(bytes, at);
    for (let j = 0; j < 16; j += 1) {
      const pair = bytes[at + 2 + j]!;
      values[to + j] = d * ((pair & 15) - 8);
      values[to + j + 16] = d * ((pair >> 4) - 8);
    }
  }
}

/** d, m, 16 bytes of 4 bits: w = d q + m. */
export function dequantizeQ4_1(bytes: Uint8Array, values: Float32Array): void {
  for (let at = 0, to = 0; to < values.length; at += 20, to += 32) {
    const d = half(bytes, at);
    const m = half(bytes, at + 2);
    for (let j = 0; j < 16; j += 1) {
      const pair = bytes[at + 4 + j]!;
      values[to + j] = d * (pair & 15) + m;
      values[to + j + 16] = d * (pair >> 4) + m;
    }
  }
}

/** The fifth bit of weight `j`, in place, from the four bytes at `at`. */
const fifthBit = (bytes: Uint8Array, at: number, j: number) => ((bytes[at + (j >> 3)]! >> (j & 7)) & 1) << 4;

/** d, 32 fifth bits, 16 bytes of 4 bits: w = d (q - 16). */
export function dequantizeQ5_0(bytes: Uint8Array, values: Float32Array): void {
  for (let at = 0, to = 0; to < values.length; at += 22, to += 32) {
    const d = half(bytes, at);
    for (let j = 0; j < 16; j += 1) {
      const pair = bytes[at + 6 + j]!;
      values[to + j] = d * (((pair & 15) | fifthBit(bytes, at + 2, j)) - 16);
      values[to + j + 16] = d * (((pair >> 4) | fifthBit(bytes, at + 2, j + 16)) - 16);
    }
  }
}

/** d, m, 32 fifth bits, 16 bytes of 4 bits: w = d q + m. */
export function dequantizeQ5_1(bytes: Uint8Array, values: Float32Array): void {
  for (let at = 0, to = 0; to < values.length; at += 24, to += 32) {
    const d = half(bytes, at);
    const m = half(bytes, at + 2);
    for (let j = 0; j < 16; j += 1) {
      const pair = bytes[at + 8 + j]!;
      values[to + j] = d * ((pair & 15) | fifthBit(bytes, at + 4, j)) + m;
      values[to + j + 16] = d * ((pair >> 4) | fifthBit(bytes, at + 4, j + 16)) + m;
    }
  }
}

/** d, 32 signed bytes: w = d q. */
export function dequantizeQ8_0(bytes: Uint8Array, values: Float32Array): void {
  const signed = new Int8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0, to = 0; to < values.length; at += 34, to += 32) {
    const d = half(bytes, at);
    for (let j = 0; j < 32; j += 1) {
      values[to + j] = d * signed[at + 2 + j]!;
    }
  }
}
