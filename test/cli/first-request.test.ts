import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { firstRequest } from '../../src/cli/first-request.js';
import { chatRequestSchema } from '../../src/contract/chat.js';
import { rerankRequestSchema } from '../../src/contract/rerank.js';
import { type Catalogue, catalogueSchema } from '../../src/models/catalogue.js';

const url = 'http://127.0.0.1:8700';
const sources = [{ from: 'file', path: 'somewhere' }];
const catalogueOf = (...models: object[]): Catalogue =>
  catalogueSchema.parse({ models: models.map((model) => ({ sources, ...model })) });

let folder: string;
let keyPath: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "head race's "));
  keyPath = join(folder, 'dev-key');
  writeFileSync(keyPath, 'sk-abc\n');
});

afterAll(() => rmSync(folder, { recursive: true }));

/** The arguments that curl gets when a shell runs the line. */
function argumentsOf(line: string): string[] {
  const script = `curl() { for argument in "$@"; do printf '%s\\0' "$argument"; done; }\n${line}`;
  return execFileSync('/bin/sh', ['-c', script], { encoding: 'utf8' }).split('\0').slice(0, -1);
}

describe('firstRequest', () => {
  it('asks the first chat model with the key that it reads from its file', () => {
    const catalogue = catalogueOf({ id: 'r', task: 'rerank' }, { id: "it's", task: 'chat' });

    const [, address, , authorization, , type, , body] = argumentsOf(
      firstRequest({ url, keyPath, catalogue }),
    );

    expect(address).toBe('http://127.0.0.1:8700/v1/chat/completions');
    expect(authorization).toBe('Authorization: Bearer sk-abc');
    expect(type).toBe('Content-Type: application/json');
    expect(chatRequestSchema.parse(JSON.parse(body!))).toMatchObject({ model: "it's", stream: true });
  });

  it('asks the first reranker where there is no chat model', () => {
    const catalogue = catalogueOf({ id: 'r', task: 'rerank' });

    const words = argumentsOf(firstRequest({ url, keyPath, catalogue }));

    expect(words[1]).toBe('http://127.0.0.1:8700/v1/rerank');
    expect(rerankRequestSchema.parse(JSON.parse(words.at(-1)!)).model).toBe('r');
  });

  it('quotes nothing that needs no quotes', () => {
    const catalogue = catalogueOf({ id: 'c', task: 'chat' });

    expect(firstRequest({ url, keyPath: '/srv/app/.headrace/dev-key', catalogue })).toContain(
      'curl -N http://127.0.0.1:8700/v1/chat/completions -H "Authorization: Bearer $(cat /srv/app/.headrace/dev-key)"',
    );
  });
});
