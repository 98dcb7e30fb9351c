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

test.each([
  ['HEADRACE_PORT', 'abc', 'must be an integer from 0 to 65535, not "abc"'],
  ['HEADRACE_PORT', '70000', 'must be an integer from 0 to 65535, not "70000"'],
  ['HEADRACE_PORT', '-1', 'must be an integer from 0 to 65535, not "-1"'],
  ['HEADRACE_PORT', '80.5', 'must be an integer from 0 to 65535, not "80.5"'],
  ['HEADRACE_PORT', '0x50', 'must be an integer from 0 to 65535, not "0x50"'],
  ['HEADRACE_LOCK_SECONDS', '1', 'must be an integer from 2 to 3600, not "1"'],
  ['HEADRACE_LOG_LEVEL', 'loud', 'must be one of fatal, error, warn, info, debug, trace, silent, not "loud"'],
  ['DATABASE_URL', 'mysql://me:secret@db', 'must start with postgres:// or postgresql://'],
  ['HEADRACE_ADMIN_TOKEN', 'short secret', 'must have at least 16 characters'],
])(
  '%s=%s is told with what it should be, and with what it is where that is no secret',
  (name, value, expected) => {
    expect(() => loadConfig({ [name]: value })).toThrow(`${name}: ${expected}`);
    expect(() => loadConfig({ [name]: value })).toThrow(
      expect.not.objectContaining({ message: expect.stringContaining('secret') }),
    );
  },
);

test('an integer may have spaces around it', () => {
  expect(loadConfig({ HEADRACE_PORT: ' 80 ' }).port).toBe(80);
});

test('proxies are addresses and networks, and never simply all', () => {
  const trusted = (value: string) => loadConfig({ HEADRACE_TRUST_PROXY: value }).trustProxy;
  expect(trusted('')).toBeUndefined();
  expect(trusted('loopback, 10.0.0.0/8,2001:db8::1')).toEqual(['loopback', '10.0.0.0/8', '2001:db8::1']);
  for (const wrong of ['true', '1', '10.0.0.0/99', 'proxy.example.org', ',']) {
    expect(() => trusted(wrong)).toThrow('HEADRACE_TRUST_PROXY');
  }
});
