/** Sixteen-bit floating-point formats, widened to float32. Both conversions are exact. */

/** The value of one IEEE 754 binary16 number given as its bits. */
export function halfToFloat(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) {
    return sign * fraction * 2 ** -24;
  }
  if (exponent === 31) {
    return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY;
  }
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

let halves: Float32Array | undefined;

/** Every half by its bits: a look-up is several times quicker than the arithmetic, and files hold millions. */
export function halfTable(): Float32Array {
  halves ??= Float32Array.from({ length: 65_536 }, (_, bits) => halfToFloat(bits));
  return halves;
}

/** `bytes` must be aligned to 2 and of even length. */
export function float16ToFloat32(bytes: Uint8Array): Float32Array {
  const table = halfTable();
  const source = new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2);
  const values = new Float32Array(source.length);
  for (let index = 0; index < values.length; index += 1) {
    values[index] = table[source[index]!]!;
  }
  return values;
}

/** A bfloat16 is the upper half of a float32. `bytes` must be aligned to 2 and of even length. */
export function bfloat16ToFloat32(bytes: Uint8Array): Float32Array {
  const source = new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2);
  const bits = new Uint32Array(source.length);
  for (let index = 0; index < bits.length; index += 1) {
    bits[index] = source[index]! << 16;
  }
  return new Float32Array(bits.buffer);
}
