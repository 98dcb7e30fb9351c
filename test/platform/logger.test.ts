import { expect, test } from 'vitest';
import { createLogger } from '../../src/platform/logger.js';

function logged(write: (logger: ReturnType<typeof createLogger>) => void): string {
  let text = '';
  const destination = {
    write: (line: string) => {
      text += line;
    },
  };
  write(createLogger({ level: 'info', name: 'test' }, destination));
  return text;
}

test('a line is JSON with the process’s name in it', () => {
  const line = JSON.parse(logged((logger) => logger.info({ model: 'm' }, 'online')));
  expect(line).toMatchObject({ name: 'test', model: 'm', msg: 'online' });
});

test.each([
  ['a request’s authorization header', { req: { headers: { authorization: 'Bearer sk-secret' } } }],
  ['headers', { headers: { authorization: 'Bearer sk-secret' } }],
  ['a key', { key: 'sk-secret' }],
  ['a key within something', { account: { key: 'sk-secret' } }],
])('%s is cut out', (_title, fields) => {
  const line = logged((logger) => logger.info(fields, 'request'));
  expect(line).not.toContain('sk-secret');
  expect(line).toContain('[redacted]');
});

test('what is below the level is not written', () => {
  expect(logged((logger) => logger.debug('detail'))).toBe('');
});
