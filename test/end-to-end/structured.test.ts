import ajvModule from 'ajv/dist/2020.js';
import formatsModule from 'ajv-formats';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { chatChunkSchema } from '../../src/contract/chat.js';
import { describeBackplanes } from '../support/backplanes.js';
import { errorBody } from '../support/error-body.js';
import { schemas } from '../worker/grammar/schemas.js';
import { collect, events, TestService } from './test-service.js';

const schema = {
  type: 'object',
  properties: {
    name: { type: 'string', minLength: 2, maxLength: 8 },
    role: { enum: ['editor', 'leser*in', '管理者'] },
    scores: { type: 'array', items: { type: 'integer', minimum: 0, maximum: 100 }, minItems: 1, maxItems: 3 },
    address: {
      anyOf: [
        { type: 'null' },
        {
          type: 'object',
          properties: { zip: { type: 'string', pattern: '^[0-9]{5}$' } },
          required: ['zip'],
          additionalProperties: false,
        },
      ],
    },
  },
  required: ['name', 'role', 'scores', 'address'],
  additionalProperties: false,
};
const format = { type: 'json_schema', json_schema: { name: 'person', schema, strict: true } };
const validator = new ajvModule.default({ strict: false });
formatsModule.default(validator);
const validate = validator.compile(schema);
/** The tokens of quotes, braces and brackets, which weights drawn by chance would hardly choose. */
const closing = { 4: 8, 95: 8, 63: 8 };
const loose = { temperature: 1.5, top_p: 1, top_k: -1, max_tokens: 200 };

describeBackplanes('response_format', (kit) => {
  let service: TestService;
  beforeAll(async () => {
    service = await TestService.start(kit.settings);
  });
  afterAll(() => service?.close());

  it('json_schema: every text fits the schema, in each of n choices', async () => {
    const reply = await service.complete({ ...loose, response_format: format, n: 4, seed: 5 });
    expect(reply.choices).toHaveLength(4);
    const texts = reply.choices.map(({ message }) => message.content!);
    for (const [index, text] of texts.entries()) {
      expect(reply.choices[index]!.finish_reason).toBe('stop');
      expect(validate(JSON.parse(text)), text).toBe(true);
    }
    expect(new Set(texts).size).toBeGreaterThan(1);
  });

  it('json_schema: every text that ends fits, for each of many schemas at once', async () => {
    const replies = await Promise.all(
      Object.entries(schemas).map(async ([title, each], seed) => {
        const json_schema = { name: 'each', schema: each as object };
        const fields = { response_format: { type: 'json_schema', json_schema }, logit_bias: closing, seed };
        const [choice] = (await service.complete({ ...loose, ...fields })).choices;
        return { title, each, ended: choice!.finish_reason === 'stop', text: choice!.message.content! };
      }),
    );
    for (const { title, each, ended, text } of replies) {
      if (ended) expect(validator.validate(each as object, JSON.parse(text)), `${title}: ${text}`).toBe(true);
    }
    const ended = replies.filter((reply) => reply.ended);
    expect(ended.length).toBeGreaterThan(60);
  });

  it('json_schema: the stream is the text of the whole reply', async () => {
    const fields = { ...loose, response_format: format, seed: 11 };
    const whole = await service.complete(fields);
    const { text, last } = await collect(await service.chat({ ...fields, stream: true }));
    expect(text).toBe(whole.choices[0]!.message.content);
    expect(last).toBe('[DONE]');
  });

  it('json_object: the text is an object', async () => {
    const reply = await service.complete({
      ...loose,
      response_format: { type: 'json_object' },
      max_tokens: 400,
      logit_bias: closing,
      seed: 3,
    });
    const [choice] = reply.choices;
    expect(choice!.finish_reason).toBe('stop');
    expect(JSON.parse(choice!.message.content!)).toBeTypeOf('object');
  });

  it('a text that max_tokens cuts off ends in length', async () => {
    const reply = await service.complete({ ...loose, response_format: format, max_tokens: 5 });
    expect(reply.choices[0]!.finish_reason).toBe('length');
  });

  it('leaves the text of other requests in the batch as it is', async () => {
    const plain = { max_tokens: 60, temperature: 1, seed: 9 };
    const alone = await service.complete(plain);
    const [together] = await Promise.all([
      service.complete(plain),
      ...[1, 2, 3].map((seed) => service.complete({ ...loose, response_format: format, seed })),
    ]);
    expect(together!.choices[0]!.message.content).toBe(alone.choices[0]!.message.content);
  });

  it('carries log-probabilities of tokens that the grammar allowed', async () => {
    const reply = await service.complete({
      ...loose,
      response_format: format,
      logprobs: true,
      top_logprobs: 2,
      seed: 2,
    });
    const [choice] = reply.choices;
    const content = choice!.logprobs!.content;
    expect(content.map(({ token }) => token).join('')).toBe(choice!.message.content);
    expect(content.every(({ top_logprobs }) => top_logprobs.length === 2)).toBe(true);
  });

  it.each([
    [
      'response_format.json_schema.schema.properties.age.not: is not supported',
      { type: 'object', properties: { age: { not: { type: 'null' } } } },
    ],
    [
      'response_format.json_schema.schema.$ref: "#/$defs/gone" is not a schema in this document',
      { $ref: '#/$defs/gone' },
    ],
    ['response_format.json_schema.schema: no value fits it', { type: 'integer', minimum: 3, maximum: 2 }],
  ])('refuses a schema that cannot be honoured: %s', async (message, refused) => {
    const response = await service.chat({
      response_format: { type: 'json_schema', json_schema: { name: 'x', schema: refused } },
    });
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual(errorBody(20015, message));
  });

  it('interleaves the choices of a stream by index', async () => {
    const response = await service.chat({ ...loose, response_format: format, n: 3, seed: 8, stream: true });
    const texts = ['', '', ''];
    for await (const data of events(response)) {
      if (data === '[DONE]') continue;
      for (const { index, delta } of chatChunkSchema.parse(JSON.parse(data)).choices) {
        texts[index] += delta.content ?? '';
      }
    }
    for (const text of texts) expect(validate(JSON.parse(text)), text).toBe(true);
  });
});
