import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findService } from '../../src/cli/service-address.js';

const local = { host: '127.0.0.1', port: 8700, url: undefined, key: undefined };
let folder: string;
let keyFile: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headrace-address-'));
  keyFile = join(folder, 'dev-key');
  await writeFile(keyFile, 'sk-development\n');
});

afterAll(() => rm(folder, { recursive: true }));

describe('findService', () => {
  it('finds the local service and its development key', async () => {
    expect(await findService({}, local, keyFile)).toEqual({
      url: 'http://127.0.0.1:8700',
      key: 'sk-development',
      keyOrigin: `the one in ${keyFile}`,
    });
  });

  it('prefers the environment to the local service', async () => {
    const config = { ...local, url: 'https://example.org/v1', key: 'sk-environment' };

    expect(await findService({}, config, keyFile)).toEqual({
      url: 'https://example.org',
      key: 'sk-environment',
      keyOrigin: 'the one in HEADRACE_KEY',
    });
  });

  it('prefers options to the environment', async () => {
    const config = { ...local, url: 'https://example.org', key: 'sk-environment' };

    expect(await findService({ url: 'http://other', key: 'sk-option' }, config, keyFile)).toEqual({
      url: 'http://other',
      key: 'sk-option',
      keyOrigin: 'the one given with --key',
    });
  });

  it.each([
    ['0.0.0.0', 'http://127.0.0.1:8700'],
    ['::', 'http://[::1]:8700'],
    ['::1', 'http://[::1]:8700'],
    ['example.org', 'http://example.org:8700'],
  ])('reaches a service that listens on %s at %s', async (host, url) => {
    expect((await findService({}, { ...local, host }, keyFile)).url).toBe(url);
  });

  it('says which key file is not there and what to do', async () => {
    await expect(findService({}, local, '/nowhere/dev-key')).rejects.toThrow(
      /no \/nowhere\/dev-key.*--key or HEADRACE_KEY/,
    );
  });

  it('names the variable that is no URL', async () => {
    await expect(findService({}, { ...local, url: 'example.org' }, keyFile)).rejects.toThrow(
      /^HEADRACE_URL: /,
    );
  });
});
