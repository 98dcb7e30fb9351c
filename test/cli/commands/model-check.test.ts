import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test, vi } from 'vitest';
import { modelCheck } from '../../../src/cli/commands/model-check.js';
import type { WeightFormat } from '../../../src/models/manifest.js';
import { temporaryFolder } from '../../models/temporary-folder.js';

const fixtures = fileURLToPath(new URL('../../fixtures/', import.meta.url));

async function check(source: string, cases: string, weights: WeightFormat = 'float32') {
  const stdout = new PassThrough();
  const exitCode = await modelCheck(
    {
      source: join(fixtures, source),
      cases: cases.startsWith('/') ? cases : join(fixtures, cases),
      weights,
      threads: 1,
    },
    { stdout: stdout },
  );
  stdout.end();
  return { exitCode, report: JSON.parse(await text(stdout)) };
}

const folder = (source: string): [string, string] => [source, `${source}/expected.json`];
const gguf = (name: string): [string, string] => [`gguf/${name}.gguf`, `gguf/${name}.expected.json`];

test.each([
  folder('decoder/llama-tied'),
  folder('decoder/llama3-rope'),
  folder('decoder/qwen3-qknorm'),
  gguf('llama-tied-q4_1'),
  gguf('llama-tied-q8_0'),
])('%s in float32 draws the greedy tokens of the reference, from its logits', async (source, cases) => {
  const { exitCode, report } = await check(source, cases);
  expect(report.largest_error).toBeLessThan(1e-3);
  for (const result of report.cases) expect(result.greedy_equal).toBe(true);
  expect(exitCode).toBe(0);
});

// Its reference ran with rotary frequencies rounded to bfloat16, which bfloat16 weights do not ask for: the logits
// can only be near, and the more positions there are the less.
test('decoder/qwen2-bias in float32 draws the greedy tokens of the reference', async () => {
  const { report } = await check(...folder('decoder/qwen2-bias'));
  for (const result of report.cases) expect(result.greedy_equal).toBe(true);
  expect(report.largest_error).toBeLessThan(0.2);
});

test.each([folder('encoder/bert-cross-encoder'), folder('encoder/xlm-roberta-cross-encoder')])(
  '%s in float32 gives the logits and scores of the reference, from the texts',
  async (source, cases) => {
    const { exitCode, report } = await check(source, cases);
    for (const result of report.cases) expect(result.tokens_equal).toBe(true);
    expect(report.largest_error).toBeLessThan(1e-3);
    expect(exitCode).toBe(0);
  },
);

test('a bi-encoder in float32 gives the embeddings and cosines of the reference, from the texts', async () => {
  const { exitCode, report } = await check(...folder('encoder/bert-bi-encoder'));
  expect(report.cases).toHaveLength(9);
  expect(report.largest_error).toBeLessThan(1e-3);
  expect(exitCode).toBe(0);
});

test('int8 is judged by no tolerance', async () => {
  const { exitCode, report } = await check(...folder('decoder/llama-tied'), 'int8');
  expect(report).toMatchObject({ weights: 'int8', tolerance: null, passed: true });
  expect(report.largest_error).toBeGreaterThan(1e-3);
  expect(exitCode).toBe(0);
});

async function changedCases(change: (one: { last_logits: number[]; greedy_ids: number[] }) => void) {
  const path = join(await temporaryFolder(), 'cases.json');
  const { default: file } = await import('../../fixtures/decoder/llama-tied/expected.json');
  const copy = structuredClone(file);
  change(copy.cases[1]!);
  await writeFile(path, JSON.stringify(copy));
  return path;
}

test('a logit beyond the tolerance is exit code 1', async () => {
  const path = await changedCases((one) => {
    one.last_logits[7]! += 0.002;
  });
  const { exitCode, report } = await check('decoder/llama-tied', path);
  expect(exitCode).toBe(1);
  expect(report.passed).toBe(false);
  expect(report.cases[1].largest_error).toBeCloseTo(0.002, 3);
});

test('another greedy token is exit code 1', async () => {
  const path = await changedCases((one) => {
    one.greedy_ids[23]! += 1;
  });
  const { exitCode, report } = await check('decoder/llama-tied', path);
  expect(exitCode).toBe(1);
  expect(report.cases.map((result: { greedy_equal: boolean }) => result.greedy_equal)).toEqual([
    true,
    false,
    true,
    true,
  ]);
});

test.each([
  ['no JSON', 'x', 'not JSON'],
  ['none of the three kinds', '{}', 'not reference cases'],
  ['misshapen cases', '{"cases":[{"prompt_ids":[]}]}', 'cases.0.prompt_ids'],
])('a file with %s is refused by name', async (_, contents, reason) => {
  const path = join(await temporaryFolder(), 'cases.json');
  await writeFile(path, contents);
  const checking = check('decoder/llama-tied', path);
  await expect(checking).rejects.toThrow(path);
  await expect(checking).rejects.toThrow(reason);
});

test('cases of another kind of model are refused', async () => {
  await expect(check('decoder/llama-tied', 'encoder/bert-bi-encoder/expected.json')).rejects.toThrow(
    /cases of a bi-encoder, but .*llama-tied is a decoder/,
  );
});

test('the compiled model does not outlive the check', async () => {
  const temporary = await temporaryFolder();
  vi.stubEnv('TMPDIR', temporary);
  onTestFinished(() => {
    vi.unstubAllEnvs();
  });
  await check(...folder('encoder/bert-bi-encoder'));
  expect(await readdir(temporary)).toEqual([]);
});
