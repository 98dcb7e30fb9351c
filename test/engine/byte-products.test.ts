import { expect, it } from 'vitest';
import { bytesSaturate } from '../../src/engine/byte-products.js';

it.each([
  ['exact', 64 * 255 * 127, false],
  ['cut off at 16 bits, as processors without VNNI do', 32 * 32767, true],
])('sums that are %s', async (_, sum, saturated) => {
  expect(await bytesSaturate(async () => new Int32Array(32).fill(sum))).toBe(saturated);
});
