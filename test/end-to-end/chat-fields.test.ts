import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ChatChunk, type ChatResponse, chatChunkSchema, type Logprob } from '../../src/contract/chat.js';
import { errorBodySchema } from '../../src/contract/errors.js';
import { describeBackplanes } from '../support/backplanes.js';
import { fixtureTokenizer } from '../worker/support/fixture-model.js';
import { chatModel, events, rerankModel, TestService } from './test-service.js';

const contextLength = 512;
const tokenizer = fixtureTokenizer('decoder/llama-tied');
const endOfTurn = tokenizer.specialToken('<|im_end|>')!;
/** A model with random weights may end its turn at any time. */
const endless = { logit_bias: { [endOfTurn]: -100 } };
const wild = { temperature: 2, top_p: 1, top_k: -1 };

type Choice = ChatResponse['choices'][number];

/** What the chunks of a stream add up to, choice by choice. */
function gather(chunks: readonly ChatChunk[]): Choice[] {
  const choices: Choice[] = [];
  for (const { index, delta, logprobs, finish_reason } of chunks.flatMap((chunk) => chunk.choices)) {
    const known = choices[index];
    // The first delta of a choice, and no other, carries the role.
    expect(delta.role).toBe(known === undefined ? 'assistant' : undefined);
    const choice = known ?? {
      index,
      message: { role: 'assistant' as const, content: '' },
      finish_reason: 'stop' as const,
    };
    choices[index] = choice;
    choice.message.content += delta.content ?? '';
    if (logprobs != null)
      choice.logprobs = { content: [...(choice.logprobs?.content ?? []), ...logprobs.content] };
    if (finish_reason === null) continue;
    expect(delta).toEqual({});
    choice.finish_reason = finish_reason;
  }
  return choices;
}

describeBackplanes('a chat completion', (kit) => {
  let service: TestService;
  beforeAll(async () => {
    service = await TestService.start(kit.settings);
  });
  afterAll(() => service?.close());

  async function streamed(fields: Record<string, unknown>): Promise<ChatChunk[]> {
    const data: string[] = [];
    for await (const event of events(await service.chat({ ...fields, stream: true }))) data.push(event);
    expect(data.pop()).toBe('[DONE]');
    return data.map((event) => chatChunkSchema.strict().parse(JSON.parse(event)));
  }

  /** Asks for the same whole and streamed, and holds the two against each other. */
  async function both(fields: Record<string, unknown>): Promise<ChatResponse> {
    const whole = await service.complete(fields);
    const chunks = await streamed(fields);
    expect(gather(chunks)).toEqual(whole.choices);
    const { prompt_tokens_details: _, ...usage } = whole.usage;
    expect(chunks.at(-1)!.usage).toMatchObject(usage);
    expect(usage.total_tokens).toBe(usage.prompt_tokens + usage.completion_tokens);
    return whole;
  }

  const textOf = ({ choices }: ChatResponse) => choices[0]!.message.content!;

  async function refusal(fields: Record<string, unknown>) {
    const response = await service.chat(fields);
    expect(response.status).toBe(400);
    return errorBodySchema.strict().parse(await response.json());
  }

  describe('model', () => {
    it.each(['nobody', ` ${chatModel}`])(
      '%j, which is not in the catalogue, is 400 code 20012',
      async (model) => {
        expect(await refusal({ model })).toMatchObject({
          code: 20012,
          message: 'Model does not exist. Please check it carefully.',
        });
      },
    );

    it('that is a reranker is refused', async () => {
      const { code, message } = await refusal({ model: rerankModel });
      expect(code).toBe(20015);
      expect(message).toMatch(/^model: /);
    });
  });

  describe('messages', () => {
    const ask = async (...messages: unknown[]) => textOf(await both({ messages, max_tokens: 12 }));
    const user = { role: 'user', content: 'hello\nthere' };

    it('take developer for another name of system', async () => {
      const content = 'Be brief.';
      expect(await ask({ role: 'developer', content }, user)).toBe(
        await ask({ role: 'system', content }, user),
      );
    });

    it('take parts of text for lines of a string', async () => {
      const content = ['hello', 'there'].map((text) => ({ type: 'text', text }));
      expect(await ask({ role: 'user', content })).toBe(await ask(user));
    });

    it('take null for the content of an assistant with tool_calls, and a tool’s answer to it', async () => {
      const call = { id: 'a', type: 'function', function: { name: 'now', arguments: '{}' } };
      const assistant = { role: 'assistant', content: null, tool_calls: [call] };
      expect(await ask(user, assistant, { role: 'tool', tool_call_id: 'a', content: 'noon' })).not.toBe('');
    });

    it('refuse an image where the model cannot see', async () => {
      const content = [{ type: 'image_url', image_url: { url: 'data:,' } }];
      expect((await refusal({ messages: [{ role: 'user', content }] })).error).toMatchObject({
        param: 'messages[0].content[0]',
      });
    });

    it('that do not fit into the context are refused', async () => {
      const { message } = await refusal({ messages: [{ role: 'user', content: 'word '.repeat(600) }] });
      expect(message).toMatch(/^messages: the prompt has \d+ tokens/);
    });
  });

  describe('stream', () => {
    it('brings chunks of one id, model and time', async () => {
      const chunks = await streamed({ max_tokens: 8 });
      expect(new Set(chunks.map(({ id, created, model }) => `${id} ${created} ${model}`)).size).toBe(1);
      expect(chunks[0]!.model).toBe(chatModel);
    });

    it('carries the usage with the chunk of the last finish_reason, and no other', async () => {
      const chunks = await streamed({ n: 2, max_tokens: 4 });
      expect(chunks.map(({ usage }) => usage != null)).toEqual(
        chunks.map((_, index) => index === chunks.length - 1),
      );
      expect(chunks.at(-1)!.choices[0]!.finish_reason).not.toBeNull();
    });
  });

  describe('stream_options.include_usage', () => {
    it('adds one chunk with the usage and without choices, before [DONE]', async () => {
      const chunks = await streamed({ max_tokens: 4, ...endless, stream_options: { include_usage: true } });
      expect(chunks.filter(({ choices }) => choices.length === 0)).toEqual([chunks.at(-1)]);
      expect(chunks.at(-1)!.usage!.completion_tokens).toBe(4);
    });

    it.each([undefined, null, {}, { include_usage: false }])(
      'adds none when it is %j',
      async (stream_options) => {
        const chunks = await streamed({ max_tokens: 2, stream_options });
        expect(chunks.filter(({ choices }) => choices.length === 0)).toEqual([]);
      },
    );
  });

  describe.each(['max_tokens', 'max_completion_tokens'])('%s', (name) => {
    it('is how many tokens a reply has at most, which then ends in length', async () => {
      const reply = await both({ [name]: 7, ...endless });
      expect(reply.usage.completion_tokens).toBe(7);
      expect(reply.choices[0]!.finish_reason).toBe('length');
    });

    it('is cut to what the context has room for', async () => {
      const { usage, choices } = await both({ [name]: 1_000_000, ...endless });
      expect(usage.total_tokens).toBe(contextLength);
      expect(choices[0]!.finish_reason).toBe('length');
    });
  });

  it('max_tokens is the catalogue’s where the request has none', async () => {
    expect((await both(endless)).usage.completion_tokens).toBe(64);
  });

  describe('stop', () => {
    it('ends the text before it wherever it lies across tokens and chunks', async () => {
      const fields = { ...endless, max_tokens: 60 };
      const text = textOf(await service.complete(fields));
      for (const [start, length] of [
        [0, 1],
        [3, 5],
        [11, 2],
        [20, 9],
      ] as const) {
        const stop = text.slice(start, start + length);
        const reply = await both({ ...fields, stop });
        expect(textOf(reply)).toBe(text.slice(0, text.indexOf(stop)));
        expect(reply.choices[0]!.finish_reason).toBe('stop');
        expect(reply.usage.completion_tokens).toBeLessThan(60);
      }
    });

    it('may be four, of which the first that comes ends the text', async () => {
      const fields = { ...endless, max_tokens: 60 };
      const text = textOf(await service.complete(fields));
      const stop = ['never to be written', text.slice(30, 33), text.slice(15, 18), text.slice(22, 26)];
      const ends = stop.map((each) => text.indexOf(each)).filter((at) => at !== -1);
      expect(textOf(await both({ ...fields, stop }))).toBe(text.slice(0, Math.min(...ends)));
    });

    it('that never comes changes nothing', async () => {
      const fields = { ...endless, max_tokens: 30 };
      const text = textOf(await service.complete(fields));
      expect(textOf(await both({ ...fields, stop: [`${text.slice(-3)}never`] }))).toBe(text);
    });
  });

  describe('sampling', () => {
    const fields = { ...endless, max_tokens: 24 };
    const greedy = async () => textOf(await service.complete({ ...fields, temperature: 0 }));

    it('temperature 0 takes the likeliest token whatever the seed', async () => {
      for (const seed of [1, 2])
        expect(textOf(await both({ ...fields, temperature: 0, seed }))).toBe(await greedy());
    });

    it('temperature above 0 draws', async () => {
      expect(textOf(await both({ ...fields, ...wild, seed: 1 }))).not.toBe(await greedy());
    });

    it.each([{ top_p: 1e-9 }, { top_k: 1 }, { min_p: 1 }])(
      '%j leaves the likeliest token alone',
      async (limit) => {
        expect(textOf(await both({ ...fields, ...wild, ...limit, seed: 3 }))).toBe(await greedy());
      },
    );

    it('seed: the same gives the same text, and another another', async () => {
      const ask = async (seed: number) => textOf(await both({ ...fields, ...wild, seed }));
      expect(await ask(-7)).toBe(await ask(-7));
      expect(await ask(8)).not.toBe(await ask(-7));
    });

    it.each(['frequency_penalty', 'presence_penalty'])(
      '%s: the higher, the more different tokens',
      async (name) => {
        const tokensWith = async (penalty: number) => {
          const reply = await both({ ...endless, max_tokens: 40, [name]: penalty, logprobs: true });
          return new Set(reply.choices[0]!.logprobs!.content.map(({ bytes }) => String(bytes))).size;
        };
        expect(await tokensWith(-2)).toBeLessThan(await tokensWith(2));
      },
    );

    it('logit_bias makes a token certain, or impossible', async () => {
      const [token] = await tokenizer.encode('z');
      const certain = await both({ max_tokens: 5, logit_bias: { [token!]: 100 } });
      expect(textOf(certain)).toBe('zzzzz');
      const [first] = (await both({ ...fields, logprobs: true, max_tokens: 1 })).choices[0]!.logprobs!
        .content;
      const [likeliest] = await tokenizer.encode(first!.token);
      const without = await both({ ...fields, logit_bias: { [endOfTurn]: -100, [likeliest!]: -100 } });
      expect(textOf(without)).not.toBe(await greedy());
    });

    it('logit_bias: a token outside the vocabulary is refused', async () => {
      expect((await refusal({ logit_bias: { 512: 1 } })).message).toBe(
        'logit_bias: token 512 is outside the vocabulary of 512',
      );
    });
  });

  describe('n', () => {
    it('gives so many choices, counts the prompt once and every completion', async () => {
      const fields = { ...endless, ...wild, max_tokens: 9, seed: 5 };
      const one = await service.complete(fields);
      const four = await both({ ...fields, n: 4 });
      expect(four.choices.map(({ index }) => index)).toEqual([0, 1, 2, 3]);
      expect(new Set(four.choices.map(({ message }) => message.content)).size).toBe(4);
      expect(textOf(four)).toBe(textOf(one));
      expect(four.usage).toMatchObject({
        prompt_tokens: one.usage.prompt_tokens,
        completion_tokens: 4 * 9,
      });
    });

    it('brings the choices of a stream side by side, by their index', async () => {
      const chunks = await streamed({ ...endless, n: 3, max_tokens: 20, temperature: 1, seed: 6 });
      const indices = chunks.flatMap(({ choices }) => choices.map(({ index }) => index));
      const changes = indices.filter((index, at) => at > 0 && index !== indices[at - 1]).length;
      expect(changes).toBeGreaterThan(6);
    });

    it('may be 16', async () => {
      expect((await both({ ...wild, n: 16, max_tokens: 2, seed: 1 })).choices).toHaveLength(16);
    });
  });

  describe('logprobs', () => {
    const bytesOf = (content: readonly Logprob[]) => Buffer.from(content.flatMap(({ bytes }) => bytes ?? []));

    it('come with each token of each choice, and their bytes are the text', async () => {
      const { choices } = await both({ ...endless, ...wild, seed: 2, n: 2, max_tokens: 12, logprobs: true });
      for (const { logprobs, message } of choices) {
        const { content } = logprobs!;
        expect(content).toHaveLength(12);
        expect(bytesOf(content).toString()).toBe(message.content);
        for (const { logprob, top_logprobs } of content) {
          expect(logprob).toBeLessThanOrEqual(0);
          expect(top_logprobs).toEqual([]);
        }
      }
    });

    it.each([1, 20])(
      'come with the %i likeliest tokens that top_logprobs asks for, best first',
      async (count) => {
        const { choices } = await both({ max_tokens: 6, logprobs: true, top_logprobs: count });
        for (const { token, logprob, top_logprobs } of choices[0]!.logprobs!.content) {
          expect(top_logprobs).toHaveLength(count);
          expect(top_logprobs[0]).toMatchObject({ token, logprob });
          const values = top_logprobs.map((top) => top.logprob);
          expect(values).toEqual([...values].sort((a, b) => b - a));
          expect(values.reduce((sum, value) => sum + Math.exp(value), 0)).toBeLessThanOrEqual(1.0001);
        }
      },
    );

    it.each([undefined, null, false])('are left out when asked for with %j', async (logprobs) => {
      expect((await both({ max_tokens: 3, logprobs })).choices[0]).not.toHaveProperty('logprobs');
    });
  });

  describe('user and metadata', () => {
    it('change nothing', async () => {
      const plain = await both({ max_tokens: 8 });
      const named = await both({ max_tokens: 8, user: 'somebody', metadata: { ticket: 7, tags: ['a'] } });
      expect(textOf(named)).toBe(textOf(plain));
    });
  });

  it('a field that is not in the contract is ignored', async () => {
    expect(textOf(await both({ max_tokens: 8, surprise: { deep: [1] } }))).toBe(
      textOf(await both({ max_tokens: 8 })),
    );
  });

  describe('finish_reason', () => {
    it('is stop at the end of the turn', async () => {
      const reply = await both({ logit_bias: { [endOfTurn]: 100 } });
      expect(reply.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: '' } });
      expect(reply.usage.completion_tokens).toBe(1);
    });
  });

  it('is also asked for under the path without the version', async () => {
    const request = { model: chatModel, messages: [{ role: 'user', content: 'hello' }], max_tokens: 2 };
    expect((await service.post('/chat/completions', request)).status).toBe(200);
  });
});
