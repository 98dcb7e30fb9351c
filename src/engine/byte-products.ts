import { encodeModel } from '../models/onnx-writer.js';

const inputs = 64;
const outputs = 32;
/** The largest numbers there are: the sums of two of their products do not fit 16 bits. */
const unsigned = 255;
const signed = 127;

/**
 * Whether a processor computes wrongly with unsigned bytes times signed constant ones: without VNNI it sums pairs of
 * products in 16 bits, which overflow. Found out by trying.
 * @param multiply runs a graph that takes `row`, uint8 [1, n], and gives `sums`, int32 [1, m]
 */
export async function bytesSaturate(
  multiply: (graph: Uint8Array, row: Uint8Array) => Promise<Int32Array>,
): Promise<boolean> {
  const sums = await multiply(product(), new Uint8Array(inputs).fill(unsigned));
  return sums.some((sum) => sum !== inputs * unsigned * signed);
}

/** A row times a constant matrix, as the graphs of int8 models have it. */
function product(): Uint8Array {
  return encodeModel({
    nodes: [
      {
        name: 'product',
        domain: '',
        operator: 'MatMulInteger',
        inputs: ['row', 'matrix'],
        outputs: ['sums'],
        attributes: {},
      },
    ],
    initializers: [
      {
        name: 'matrix',
        type: 'int8',
        dims: [inputs, outputs],
        data: new Uint8Array(inputs * outputs).fill(signed),
      },
    ],
    inputs: [{ name: 'row', type: 'uint8', dims: [1, inputs] }],
    outputs: [{ name: 'sums', type: 'int32', dims: [1, outputs] }],
  });
}
