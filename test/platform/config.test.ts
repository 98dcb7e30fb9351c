import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { ConfigError, loadConfig } from '../../src/platform/config.js';

test('an empty environment is the embedded default on the loopback address', () => {
  expect(loadConfig({})).toMatchObject({
    host: '127.0.0.1',
    port: 8700,
    dataDir: resolve('.headrace'),
    databaseUrl: undefined,
    redisUrl: undefined,
  });
});

test('an empty variable is the same as none', () => {
  const empty = { HEADRACE_PORT: '', REDIS_URL: '', DATABASE_URL: '', HEADRACE_DATA_DIR: '' };
  expect(loadConfig(empty)).toEqual(loadConfig({}));
});

test('paths are made absolute, seconds and MiB become milliseconds and bytes', () => {
  const config = loadConfig({
    HEADRACE_DATA_DIR: 'some/where',
    HEADRACE_LOCK_SECONDS: '3',
    HEADRACE_BODY_LIMIT_MIB: '2',
  });
  expect(config).toMatchObject({ dataDir: resolve('some/where'), lockMs: 3_000, bodyLimitBytes: 2_097_152 });
});

test('every variable that is wrong is named at once', () => {
  const wrong = { HEADRACE_PORT: '70000', REDIS_URL: 'http://redis', DATABASE_URL: 'mysql://db' };
  expect(() => loadConfig(wrong)).toThrow(ConfigError);
  for (const name of Object.keys(wrong)) expect(() => loadConfig(wrong)).toThrow(name);
});

test('proxies are addresses and networks, and never simply all', () => {
  const trusted = (value: string) => loadConfig({ HEADRACE_TRUST_PROXY: value }).trustProxy;
  expect(trusted('')).toBeUndefined();
  expect(trusted('loopback, 10.0.0.0/8,2001:db8::1')).toEqual(['loopback', '10.0.0.0/8', '2001:db8::1']);
  for (const wrong of ['true', '1', '10.0.0.0/99', 'proxy.example.org', ',']) {
    expect(() => trusted(wrong)).toThrow('HEADRACE_TRUST_PROXY');
  }
});
