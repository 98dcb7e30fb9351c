/** Weights in blocks of 32 along the rows, as the block formats of GGUF have them: their values come out exact. */
export const blockSize = 32;

/**
 * A matrix in 4 bits: element i of block b of output o is `(code - 8) * scale + offset`, with the codes, scale and
 * offset of that block. Codes and scales are laid out as ONNX Runtime's `MatMulNBits` takes them.
 */
export interface FourBitMatrix {
  /** [outputs, blocks, blockSize / 2]: two codes in a byte, the first in its low half. */
  readonly codes: Uint8Array;
  /** [outputs, blocks] */
  readonly scales: Float32Array;
  /** [blocks, outputs] */
  readonly offsets: Float32Array;
  /** What rounding has changed: the squares of the errors, summed, to those of the weights. */
  readonly error: number;
}

/** A matrix in 8 bits: element i of block b of output o is `(code - 128) * scale`. */
export interface EightBitMatrix {
  /** [outputs, blocks, blockSize] */
  readonly codes: Uint8Array;
  /** [outputs, blocks] */
  readonly scales: Float32Array;
}

const largestCode = 15;

/** The codes that stand for the offset, or for 0, alone. */
const middleOf4 = 8;
const middleOf8 = 128;

/**
 * How much of the range of a block's weights the codes span: less rounds most weights finer and cuts off the
 * outermost.
 */
const spans = [1, 0.95, 0.9, 0.85, 0.8];

/**
 * Rounds `weight` [outputs, inputs] to 4 bits: for each block with the scale and offset that leave the smallest sum
 * of squared errors of those tried. `inputs` is a multiple of the block size.
 */
export function quantizeTo4Bits(weight: Float32Array, outputs: number, inputs: number): FourBitMatrix {
  const blocks = inputs / blockSize;
  const codes = new Uint8Array(weight.length / 2);
  const scales = new Float32Array(outputs * blocks);
  const offsets = new Float32Array(outputs * blocks);
  let squares = 0;
  let errors = 0;
  for (let at = 0; at < scales.length; at++) {
    const values = weight.subarray(at * blockSize, (at + 1) * blockSize);
    const { scale, lowest } = fitLine(values);
    scales[at] = scale;
    offsets[(at % blocks) * outputs + Math.floor(at / blocks)] = lowest + middleOf4 * scale;
    for (let i = 0; i < blockSize; i++) {
      const value = values[i]!;
      const code = scale === 0 ? middleOf4 : codeOf((value - lowest) / scale);
      codes[(at * blockSize + i) >> 1]! |= code << (i & 1 ? 4 : 0);
      squares += value ** 2;
      errors += (value - lowest - code * scale) ** 2;
    }
  }
  return { codes, scales, offsets, error: squares > 0 ? errors / squares : 0 };
}

/** Rounds `weight` [outputs, inputs] to 8 bits: the largest magnitude of a block becomes 127. */
export function quantizeTo8Bits(weight: Float32Array): EightBitMatrix {
  const codes = new Uint8Array(weight.length);
  const scales = new Float32Array(weight.length / blockSize);
  for (let at = 0; at < scales.length; at++) {
    const start = at * blockSize;
    let largest = 0;
    for (let i = start; i < start + blockSize; i++) largest = Math.max(largest, Math.abs(weight[i]!));
    scales[at] = largest / 127;
    const inverse = largest > 0 ? 127 / largest : 0;
    for (let i = start; i < start + blockSize; i++) codes[i] = Math.round(weight[i]! * inverse) + middleOf8;
  }
  return { codes, scales };
}

/** A block's weights are about `lowest + code * scale`. */
interface Line {
  readonly scale: number;
  readonly lowest: number;
}

/**
 * Codes are found for each span, and then the line through weights over codes by least squares; the best line is
 * that which explains most of the weights' variance, covariance^2 / variance of the codes.
 */
function fitLine(values: Float32Array): Line {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  let best: Line = { scale: 0, lowest: low };
  let explained = 0;
  for (const span of low < high ? spans : []) {
    const rough = (span * (high - low)) / largestCode;
    const start = low + ((1 - span) * (high - low)) / 2;
    let sum = 0;
    let codeSum = 0;
    let codeSquares = 0;
    let products = 0;
    for (const value of values) {
      const code = codeOf((value - start) / rough);
      sum += value;
      codeSum += code;
      codeSquares += code * code;
      products += code * value;
    }
    const codeVariance = codeSquares - (codeSum * codeSum) / blockSize;
    const covariance = products - (codeSum * sum) / blockSize;
    if (codeVariance === 0 || (covariance * covariance) / codeVariance <= explained) continue;
    explained = (covariance * covariance) / codeVariance;
    const scale = Math.fround(covariance / codeVariance);
    best = { scale, lowest: (sum - scale * codeSum) / blockSize };
  }
  return best;
}

function codeOf(level: number): number {
  const code = Math.round(level);
  return Math.max(0, Math.min(code, largestCode));
}
