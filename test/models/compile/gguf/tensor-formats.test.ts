import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { formatName, tensorFormats } from '../../../../src/models/compile/gguf/tensor-formats.js';

interface Case {
  readonly type: string;
  readonly ggml_type: number;
  readonly shape: readonly [number, number];
  readonly raw_base64: string;
  /** Written with seven decimals. */
  readonly values: readonly number[];
}

const fixture = join(dirname(fileURLToPath(import.meta.url)), '../../../fixtures/gguf/dequantize.json');
const cases: readonly Case[] = JSON.parse(readFileSync(fixture, 'utf8'));

for (const { type, ggml_type: number, raw_base64, values } of cases) {
  test(`blocks of ${type} have the reference's values`, () => {
    const format = tensorFormats.get(number)!;
    expect(formatName(number)).toBe(type);
    const dequantized = format.toFloat32(Uint8Array.from(Buffer.from(raw_base64, 'base64')));
    expect(dequantized).toHaveLength(values.length);
    const worst = Math.max(...values.map((value, index) => Math.abs(value - dequantized[index]!)));
    expect(worst).toBeLessThan(1e-7);
  });
}

test('every quantized format has a reference', () => {
  const known = new Set(cases.map(({ ggml_type }) => ggml_type));
  const missing = [...tensorFormats.keys()].filter((type) => !known.has(type)).map(formatName);
  expect(missing).toEqual(['F32']);
});
