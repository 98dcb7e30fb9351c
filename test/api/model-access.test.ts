import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { catalogueChannel } from '../../src/contract/names.js';
import { initialState, type ModelState } from '../../src/platform/model-registry/model-state.js';
import {
  accountId,
  authorization,
  chatRequest,
  rerankRequest,
  startTestService,
  type TestService,
} from './support/test-app.js';

let service: TestService;
beforeEach(async () => {
  service = await startTestService();
});
afterEach(() => service.close());

/** Decides about a model and resolves once the service knows. */
async function decide(model: string, state: Partial<ModelState>): Promise<void> {
  service.database.modelStates.set(model, { ...initialState, ...state });
  const loads = service.database.modelLoads;
  await service.backplane.channel.publish(catalogueChannel, 'changed');
  await expect.poll(() => service.database.modelLoads).toBeGreaterThan(loads);
}

const refusal = async (request: ReturnType<typeof chatRequest> | ReturnType<typeof rerankRequest>) => {
  const response = await service.app.inject(request);
  return [response.statusCode, response.json().code];
};

const deprecatedAt = new Date('2026-01-02T03:04:05Z');
const sunsetAt = new Date('2099-12-31T23:59:59Z');

describe('a model', () => {
  it('that is offline is no model, and not listed', async () => {
    await decide('tiny-chat', { state: 'offline' });
    expect(await refusal(chatRequest())).toEqual([400, 20012]);
    const list = await service.app.inject({ url: '/v1/models', headers: { authorization } });
    expect(list.json().data.map(({ id }: { id: string }) => id)).toEqual([
      'owner/seeing-chat',
      'tiny-rerank',
    ]);
  });

  it('that goes offline lets requests that have begun run to their end', async () => {
    const answer = service.app.inject(chatRequest());
    const run = await service.chat.next();
    await decide('tiny-chat', { state: 'offline' });
    expect(await refusal(chatRequest())).toEqual([400, 20012]);
    await run.start();
    await run.text('Hello');
    await run.finish();
    expect((await answer).json().choices[0].message.content).toBe('Hello');
  });

  it('with a list is open to the accounts on it', async () => {
    await decide('tiny-rerank', { access: 'listed' });
    expect(await refusal(rerankRequest())).toEqual([403, 30003]);
    await decide('tiny-rerank', { access: 'listed', accounts: new Set([accountId]) });
    const answer = service.app.inject(rerankRequest());
    await (await service.rerank.next()).rank([0.1, 0.2, 0.3]);
    expect((await answer).statusCode).toBe(200);
  });

  it('for verified accounts asks others to verify', async () => {
    await decide('tiny-chat', { access: 'verified' });
    expect(await refusal(chatRequest())).toEqual([403, 30005]);
  });

  it('that is deprecated says since when and until when on everything that it answers', async () => {
    await decide('tiny-rerank', { state: 'deprecated', deprecatedAt, sunsetAt, access: 'listed' });
    const expected = { deprecation: '@1767323045', sunset: 'Thu, 31 Dec 2099 23:59:59 GMT' };
    const refused = await service.app.inject(rerankRequest());
    expect(refused.statusCode).toBe(403);
    expect(refused.headers).toMatchObject(expected);
    const shown = await service.app.inject({ url: '/v1/models/tiny-rerank', headers: { authorization } });
    expect(shown.headers).toMatchObject(expected);
  });

  it('that is not deprecated says nothing of the kind', async () => {
    const { headers } = await service.app.inject({
      url: '/v1/models/tiny-rerank',
      headers: { authorization },
    });
    expect(headers).not.toHaveProperty('deprecation');
    expect(headers).not.toHaveProperty('sunset');
  });

  it('whose sunset has come is no model', async () => {
    await decide('tiny-chat', { state: 'deprecated', deprecatedAt, sunsetAt: deprecatedAt });
    expect(await refusal(chatRequest())).toEqual([400, 20012]);
  });

  it('that is offline needs no worker for the service to be ready', async () => {
    for (const model of ['tiny-chat', 'owner/seeing-chat']) await decide(model, { state: 'offline' });
    const { message } = (await service.app.inject({ url: '/readyz' })).json();
    expect(message).toBe('Not ready: no worker serves tiny-rerank.');
  });
});
