import { halfTable } from '../float16.js';

/**
 * The block formats of 256 weights with scales of their own for every 16 or 32 of them. The layouts are ggml's
 * `block_q2_K` ... `block_q6_K`. Each function fills `values`, 256 to a block of `bytes`.
 */

const half = (bytes: Uint8Array, at: number) => halfTable()[bytes[at]! | (bytes[at + 1]! << 8)]!;

/** 16 bytes of 4-bit scale and minimum, 64 bytes of 2 bits, d, dmin: w = d s q - dmin m. */
export function dequantizeQ2_K(bytes: Uint8Array, values: Float32Array): void {
  for (let at = 0, to = 0; to < values.length; at += 84, to += 256) {
    const d = half(bytes, at + 80);
    const dmin = half(bytes, at + 82);
    for (let group = 0; group < 16; group += 1) {
      const scale = d * (bytes[at + group]! & 15);
      const minimum = dmin * (bytes[at + group]! >> 4);
      const from = at + 16 + twoBitBytes(group);
      const shift = twoBitShift(group);
      for (let j = 0; j < 16; j += 1) {
        values[to + group * 16 + j] = scale * ((bytes[from + j]! >> shift) & 3) - minimum;
      }
    }
  }
}

/**
 * 256 third bits (clear means subtract 4), 64 bytes of 2 bits, 12 bytes of sixteen 6-bit scales, d:
 * w = d (s - 32) (q - 4 unless the third bit is set).
 */
export function dequantizeQ3_K(bytes: Uint8Array, values: Float32Array): void {
  for (let at = 0, to = 0; to < values.length; at += 110, to += 256) {
    const d = half(bytes, at + 108);
    for (let group = 0; group < 16; group += 1) {
      const scale = d * (sixBitScale(bytes, at + 96, group) - 32);
      const from = at + 32 + twoBitBytes(group);
      const shift = twoBitShift(group);
      const third = at + (group & 1) * 16;
      const bit = 1 << (group >> 1);
      for (let j = 0; j < 16; j += 1) {
        const lower = (bytes[from + j]! >> shift) & 3;
        values[to + group * 16 + j] = scale * (bytes[third + j]! & bit ? lower : lower - 4);
      }
    }
  }
}

/** d, dmin, 12 bytes of eight 6-bit scales and minima, 128 bytes of 4 bits: w = d s q - dmin m. */
export function dequantizeQ4_K(bytes: Uint8Array, values: Float32Array): void {
  for (let at = 0, to = 0; to < values.length; at += 144, to += 256) {
    const d = half(bytes, at);
    const dmin = half(bytes, at + 2);
    for (let group = 0; group < 8; group += 1) {
      const scale = d * kScale(bytes, at + 4, group);
      const minimum = dmin * kMinimum(bytes, at + 4, group);
      const from = at + 16 + (group >> 1) * 32;
      const shift = (group & 1) * 4;
      for (let j = 0; j < 32; j += 1) {
        values[to + group * 32 + j] = scale * ((bytes[from + j]! >> shift) & 15) - minimum;
      }
    }
  }
}

/** As Q4_K with 32 bytes of fifth bits, bit g of byte j for weight j of group g, before the lower four. */
export function dequantizeQ5_K(bytes: Uint8Array, values: Float32Array): void {
  for (let at = 0, to = 0; to < values.length; at += 176, to += 256) {
    const d = half(bytes, at);
    const dmin = half(bytes, at + 2);
    for (let group = 0; group < 8; group += 1) {
      const scale = d * kScale(bytes, at + 4, group);
      const minimum = dmin * kMinimum(bytes, at + 4, group);
      const from = at + 48 + (group >> 1) * 32;
      const shift = (group & 1) * 4;
      for (let j = 0; j < 32; j += 1) {
        const fifth = ((bytes[at + 16 + j]! >> group) & 1) << 4;
        values[to + group * 32 + j] = scale * (((bytes[from + j]! >> shift) & 15) | fifth) - minimum;
      }
    }
  }
}

/** 128 bytes of lower 4 bits, 64 bytes of upper 2, 16 signed scales, d: w = d s (q - 32). */
export function dequantizeQ6_K(bytes: Uint8Array, values: Float32Array): void {
  const signed = new Int8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0, to = 0; to < values.length; at += 210, to += 256) {
    const d = half(bytes, at + 208);
    for (let group = 0; group < 16; group += 1) {
      const scale = d * signed[at + 192 + group]!;
      // Each half of the block: groups 0..3 and 4..7 are the lower and the upper halves of the same 64 bytes.
      const inHalf = group & 7;
      const lower = at + (group >> 3) * 64 + (inHalf & 3) * 16;
      const lowerShift = (inHalf >> 2) * 4;
      const upper = at + 128 + (group >> 3) * 32 + (inHalf & 1) * 16;
      const upperShift = (inHalf >> 1) * 2;
      for (let j = 0; j < 16; j += 1) {
        const q = ((bytes[lower + j]! >> lowerShift) & 15) | (((bytes[upper + j]! >> upperShift) & 3) << 4);
        values[to + group * 16 + j] = scale * (q - 32);
      }
    }
  }
}

/** Of a group of 16 two-bit weights: each half of the block keeps its groups in 32 bytes, four pairs deep. */
const twoBitBytes = (group: number) => (group >> 3) * 32 + (group & 1) * 16;
const twoBitShift = (group: number) => ((group >> 1) & 3) * 2;

/** Scale `group` of Q3_K: four bits in the first eight bytes, the upper two in the last four. */
function sixBitScale(bytes: Uint8Array, at: number, group: number): number {
  const lower = group < 8 ? bytes[at + group]! & 15 : bytes[at + group - 8]! >> 4;
  const upper = (bytes[at + 8 + (group & 3)]! >> ((group >> 2) * 2)) & 3;
  return lower | (upper << 4);
}

/** Scale `group` of Q4_K and Q5_K: the last four groups' are split between two bytes. */
function kScale(bytes: Uint8Array, at: number, group: number): number {
  return group < 4
    ? bytes[at + group]! & 63
    : (bytes[at + group + 4]! & 15) | ((bytes[at + group - 4]! >> 6) << 4);
}

/** Minimum `group`, kept beside its scale in the same way. */
function kMinimum(bytes: Uint8Array, at: number, group: number): number {
  return group < 4
    ? bytes[at + group + 4]! & 63
    : (bytes[at + group + 4]! >> 4) | ((bytes[at + group]! >> 6) << 4);
}
