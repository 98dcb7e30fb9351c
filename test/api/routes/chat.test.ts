import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { chatResponseSchema } from '../../../src/contract/chat.js';
import type { ChatJob } from '../../../src/contract/job.js';
import {
  authorization,
  chatBody,
  chatRequest,
  startTestService,
  type TestService,
} from '../support/test-app.js';

let service: TestService;
beforeEach(async () => {
  service = await startTestService();
});
afterEach(() => service.close());

describe('a reply in one piece', () => {
  it('has the shape of the contract, the gathered text and the usage', async () => {
    const answer = service.app.inject(chatRequest());
    const run = await service.chat.next();
    await run.start();
    await run.text('Hel');
    await run.text('lo');
    await run.finish('stop', { promptTokens: 9, completionTokens: 2 });
    const response = await answer;
    expect(response.statusCode).toBe(200);
    expect(chatResponseSchema.parse(response.json())).toEqual({
      id: run.job.id,
      object: 'chat.completion',
      created: expect.any(Number),
      model: 'tiny-chat',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
      usage: {
        prompt_tokens: 9,
        completion_tokens: 2,
        total_tokens: 11,
        prompt_tokens_details: { cached_tokens: 0 },
      },
    });
  });
});
