import { afterEach, describe, expect, it } from 'vitest';
import { startTestService, type TestService } from './support/test-app.js';

let service: TestService;
afterEach(() => service.close());

/** What happens to one more wrong key that is said to come from `from`, after many from `192.0.2.1`. */
async function statusAfterMany(from: string, forwarded = '192.0.2.1'): Promise<number> {
  const guess = (by: string, i: number) =>
    service.app.inject({
      url: '/v1/models',
      headers: { authorization: `Bearer sk-${i}`, 'x-forwarded-for': by },
    });
  for (let i = 0; i < 40; i++) await guess(forwarded, i);
  return (await guess(from, 99)).statusCode;
}

describe('behind proxies that are trusted', () => {
  it('each client has attempts of its own', async () => {
    service = await startTestService({ config: { trustProxy: ['loopback'] } });
    expect(await statusAfterMany('192.0.2.2')).toBe(401);
    expect(await statusAfterMany('192.0.2.1')).toBe(429);
  });

  it('a client is whom the last proxy names, whatever it wrote itself', async () => {
    service = await startTestService({ config: { trustProxy: ['127.0.0.1'] } });
    expect(await statusAfterMany('198.51.100.7, 192.0.2.1')).toBe(429);
  });

  it('what is no address is the proxy itself', async () => {
    service = await startTestService({ config: { trustProxy: ['loopback'] } });
    expect(await statusAfterMany('another name', 'a name')).toBe(429);
  });
});

it('without such proxies the header is nothing', async () => {
  service = await startTestService();
  expect(await statusAfterMany('192.0.2.2')).toBe(429);
});

it('attempts beyond the limit leave no lines in the log of a service that runs as usual', async () => {
  service = await startTestService();
  for (let i = 0; i < 200; i++) {
    await service.app.inject({
      method: 'POST',
      url: '/v1/chat/completions',
      headers: { authorization: `Bearer sk-${i}` },
      payload: {},
    });
  }
  const lines = service.log.filter(({ level }) => Number(level) >= 30);
  expect(lines.length).toBeGreaterThanOrEqual(30);
  expect(lines.length).toBeLessThan(40);
});
