import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { modelListSchema, modelSchema } from '../../../src/contract/models.js';
import { errorBody } from '../../support/error-body.js';
import { authorization, startTestService, type TestService } from '../support/test-app.js';

let service: TestService;
beforeEach(async () => {
  service = await startTestService();
});
afterEach(() => service.close());

const get = (url: string) => service.app.inject({ url, headers: { authorization } });

describe('the list of models', () => {
  it.each([
    ['', ['tiny-chat', 'owner/seeing-chat', 'tiny-rerank']],
    ['?type=text', ['tiny-chat', 'owner/seeing-chat', 'tiny-rerank']],
    ['?sub_type=chat', ['tiny-chat', 'owner/seeing-chat']],
    ['?type=text&sub_type=reranker', ['tiny-rerank']],
    ['?other=1', ['tiny-chat', 'owner/seeing-chat', 'tiny-rerank']],
  ])('with %j has those that fit, in the order of the catalogue', async (query, ids) => {
    const response = await get(`/v1/models${query}`);
    expect(response.statusCode).toBe(200);
    expect(modelListSchema.parse(response.json()).data.map(({ id }) => id)).toEqual(ids);
  });

  it.each([
    ['?type=image', 'type: must be "text"'],
    ['?sub_type=embedding', 'sub_type: must be one of "chat", "reranker"'],
    ['?type=text&type=text', 'type: must be "text"'],
  ])('with %j is 400', async (query, message) => {
    const response = await get(`/v1/models${query}`);
    expect(response.statusCode).toBe(400);
    expect(response.json()).toEqual(errorBody(20015, message));
  });
});

describe('one model', () => {
  it('is shown with what the catalogue says of it', async () => {
    const response = await get('/v1/models/tiny-chat');
    expect(modelSchema.parse(response.json())).toEqual({
      id: 'tiny-chat',
      object: 'model',
      created: 1_700_000_000,
      owned_by: 'headrace',
      type: 'text',
      sub_type: 'chat',
      context_length: 512,
      capabilities: [],
    });
  });

  it.each(['/v1/models/owner/seeing-chat', '/v1/models/owner%2Fseeing-chat'])(
    'may have a slash in its id: %s',
    async (url) => {
      const response = await get(url);
      expect(response.json()).toMatchObject({ id: 'owner/seeing-chat', capabilities: ['vision'] });
    },
  );

  it.each(['nobody', '', 'owner', 'x'.repeat(5_000)])('that is unknown is 400 with its code', async (id) => {
    const response = await get(`/v1/models/${id}`);
    expect(response.statusCode).toBe(400);
    expect(response.json()).toEqual(errorBody(20012, 'Model does not exist. Please check it carefully.'));
  });
});
