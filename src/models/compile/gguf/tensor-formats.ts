import { GGMLQuantizationType as Type } from '@huggingface/gguf';
import { bfloat16ToFloat32, float16ToFloat32 } from '../float16.js';
import {
  dequantizeQ2_K,
  dequantizeQ3_K,
  dequantizeQ4_K,
  dequantizeQ5_K,
  dequantizeQ6_K,
} from './k-quants.js';
import {
  dequantizeQ4_0,
  dequantizeQ4_1,
  dequantizeQ5_0,
  dequantizeQ5_1,
  dequantizeQ8_0,
} from './simple-quants.js';

/** How a GGUF tensor's weights are stored: in blocks of `blockWeights` along a row, `blockBytes` each. */
export interface TensorFormat {
  readonly blockWeights: number;
  readonly blockBytes: number;
  /** The weights of whole blocks. `bytes` begins at the start of its buffer. */
  toFloat32(bytes: Uint8Array): Float32Array;
}

function blocks(
  blockWeights: number,
  blockBytes: number,
  dequantize: (bytes: Uint8Array, values: Float32Array) => void,
): TensorFormat {
  return {
    blockWeights,
    blockBytes,
    toFloat32(bytes) {
      const values = new Float32Array((bytes.length / blockBytes) * blockWeights);
      dequantize(bytes, values);
      return values;
    },
  };
}

/** The formats that are read, by ggml's number. */
export const tensorFormats: ReadonlyMap<number, TensorFormat> = new Map([
  [
    Type.F32,
    { blockWeights: 1, blockBytes: 4, toFloat32: (bytes) => new Float32Array(bytes.buffer as ArrayBuffer) },
  ],
  [Type.F16, { blockWeights: 1, blockBytes: 2, toFloat32: float16ToFloat32 }],
  [Type.BF16, { blockWeights: 1, blockBytes: 2, toFloat32: bfloat16ToFloat32 }],
  [Type.Q4_0, blocks(32, 18, dequantizeQ4_0)],
  [Type.Q4_1, blocks(32, 20, dequantizeQ4_1)],
  [Type.Q5_0, blocks(32, 22, dequantizeQ5_0)],
  [Type.Q5_1, blocks(32, 24, dequantizeQ5_1)],
  [Type.Q8_0, blocks(32, 34, dequantizeQ8_0)],
  [Type.Q2_K, blocks(256, 84, dequantizeQ2_K)],
  [Type.Q3_K, blocks(256, 110, dequantizeQ3_K)],
  [Type.Q4_K, blocks(256, 144, dequantizeQ4_K)],
  [Type.Q5_K, blocks(256, 176, dequantizeQ5_K)],
  [Type.Q6_K, blocks(256, 210, dequantizeQ6_K)],
] satisfies [number, TensorFormat][]);

/** ggml's name of a format, for messages. */
export function formatName(type: number): string {
  return Type[type] ?? `number ${type}`;
}
