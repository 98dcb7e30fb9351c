/** A matrix in 8 bits: element (i, o) is `values[i * outputs + o] * scales[o]`. */
export interface QuantizedMatrix {
  /** [inputs, outputs] row-major: transposed from the published order, as integer products take it. */
  readonly values: Int8Array;
  /** [outputs] */
  readonly scales: Float32Array;
}

/** Side of the square tiles in which the matrix is transposed: two of them fit the first-level cache. */
const tile = 64;

/**
 * Rounds `weight` [outputs, inputs] to 8 bits, symmetrically and with one scale per output: the largest magnitude of
 * an output's weights becomes 127.
 */
export function quantizeChannels(weight: Float32Array, outputs: number, inputs: number): QuantizedMatrix {
  const values = new Int8Array(outputs * inputs);
  const scales = new Float32Array(outputs);
  const inverses = new Float32Array(outputs);
  for (let o = 0; o < outputs; o++) {
    let largest = 0;
    for (let at = o * inputs; at < (o + 1) * inputs; at++) {
      const magnitude = Math.abs(weight[at]!);
      if (magnitude > largest) largest = magnitude;
    }
    scales[o] = largest / 127;
    inverses[o] = largest > 0 ? 127 / largest : 0;
  }
  for (let fromO = 0; fromO < outputs; fromO += tile) {
    const toO = Math.min(fromO + tile, outputs);
    for (let fromI = 0; fromI < inputs; fromI += tile) {
      const toI = Math.min(fromI + tile, inputs);
      for (let o = fromO; o < toO; o++) {
        const inverse = inverses[o]!;
        for (let i = fromI; i < toI; i++) {
          values[i * outputs + o] = Math.round(weight[o * inputs + i]! * inverse);
        }
      }
    }
  }
  return { values, scales };
}
