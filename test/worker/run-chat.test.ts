import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { frameSchema } from '../../src/contract/frame.js';
import {
  chatJob,
  chatTokenizer,
  decoderManifest,
  openWorkbench,
  type Workbench,
  type WorkbenchOptions,
} from './support/workbench.js';

const end = chatTokenizer.specialToken('<|im_end|>')!;

let bench: Workbench;
const open = async (options?: WorkbenchOptions) => {
  await bench?.close();
  bench = await openWorkbench(options);
};
beforeEach(() => open());
afterEach(() => bench.close());

const tokensOf = async (text: string) => [...(await chatTokenizer.encode(text))];

/** Says a text one token a step, and ends it. */
async function sayAll(
  request: { id: string },
  text: string,
  finish: 'end' | 'length' = 'end',
): Promise<void> {
  const tokens = await tokensOf(text);
  for (const [index, token] of tokens.entries()) {
    const isLast = index === tokens.length - 1;
    bench.engine.say(request, { token, ...(finish === 'length' && isLast && { finish }) });
  }
  if (finish === 'end') bench.engine.say(request, { token: end, finish });
}

const failureOf = async (fields: Parameters<typeof chatJob>[0]) => {
  await bench.enqueue(chatJob(fields));
  return bench.log.ending('request-1');
};

test('frames are numbered from 0: started, text, finish, done', async () => {
  await bench.enqueue(chatJob());
  const request = await bench.engine.nextGenerate();
  bench.engine.admit(request, 3);
  await sayAll(request, 'a mill');
  await bench.log.ending('request-1');
  const frames = bench.log.framesOf('request-1');
  expect(frames.map(({ sequence }) => sequence)).toEqual(frames.map((_, index) => index));
  expect(frames[0]).toMatchObject({ type: 'started', attempt: 1, workerId: 'worker-1' });
  expect(bench.log.textOf('request-1')).toBe('a mill');
  expect(frames.at(-2)).toMatchObject({ type: 'finish', choice: 0, reason: 'stop' });
  expect(frames.at(-1)).toMatchObject({
    type: 'done',
    spent: {
      promptTokens: request.prompt.length,
      cachedTokens: 3,
      completionTokens: (await tokensOf('a mill')).length + 1,
    },
  });
});

test('timings tell the queue, the first token and the whole', async () => {
  let now = 1_000_000;
  await open({ now: () => now });
  await bench.enqueue(chatJob({ enqueuedAt: now - 20, deadlineAt: now + 60_000 }));
  const request = await bench.engine.nextGenerate();
  now += 30;
  const [token] = await tokensOf('a');
  bench.engine.say(request, { token: token! });
  now += 50;
  bench.engine.say(request, { token: end, finish: 'end' });
  expect(await bench.log.ending('request-1')).toMatchObject({
    timings: { queueMs: 20, firstTokenMs: 50, totalMs: 100 },
  });
});

test('the engine gets the prompt of the template and the end tokens of the model', async () => {
  await bench.enqueue(chatJob({ messages: [{ role: 'user', content: 'hi' }] }));
  const { prompt, endTokens, choices, priority } = await bench.engine.nextGenerate();
  const text = chatTokenizer.specials.mark('<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n');
  expect(prompt).toEqual(await chatTokenizer.encode(text));
  expect({ endTokens, choices, priority }).toEqual({ endTokens: [end], choices: 1, priority: 'interactive' });
});

test('a character of several tokens is one piece of text', async () => {
  await bench.enqueue(chatJob());
  const request = await bench.engine.nextGenerate();
  await sayAll(request, '你好🚀');
  await bench.log.ending('request-1');
  const texts = bench.log
    .framesOf('request-1')
    .flatMap((frame) => (frame.type === 'delta' ? [frame.text] : []));
  expect(texts.join('')).toBe('你好🚀');
  for (const text of texts) expect(text).not.toMatch(/^$|\ufffd/);
});

test('the frames of one step go to one process in one message', async () => {
  const [first, second] = await bench.generating(chatJob({ id: 'a' }), chatJob({ id: 'b' }));
  const [token] = await tokensOf('a');
  bench.engine.step(
    [first, second].map(({ id }) => ({
      type: 'token',
      id,
      choice: 0,
      token: token!,
      finish: 'length' as const,
    })),
  );
  await bench.log.ending('b');
  const last = bench.log.messages.at(-1)!;
  expect(last.map(({ id, type }) => `${id} ${type}`)).toEqual([
    'a delta',
    'a finish',
    'a done',
    'b delta',
    'b finish',
    'b done',
  ]);
});

describe('length', () => {
  test('the engine’s end of length is reported, with the text before it', async () => {
    await bench.enqueue(chatJob({ maxTokens: 2 }));
    const request = await bench.engine.nextGenerate();
    expect(request.maxTokens).toBe(2);
    await sayAll(request, 'hello', 'length');
    await bench.log.ending('request-1');
    expect(bench.log.framesOf('request-1').find(({ type }) => type === 'finish')).toMatchObject({
      reason: 'length',
    });
    expect(bench.log.textOf('request-1')).toBe('hello');
  });

  test('a request that names none gets the catalogue’s', async () => {
    await open({ manifest: { ...decoderManifest, contextLength: 4096 } });
    await bench.enqueue(chatJob());
    expect((await bench.engine.nextGenerate()).maxTokens).toBe(512);
  });

  test('prompt and completion are cut to fit the context', async () => {
    await bench.enqueue(chatJob({ maxTokens: 1_000 }));
    const { prompt, maxTokens } = await bench.engine.nextGenerate();
    expect(prompt.length + maxTokens).toBe(decoderManifest.contextLength);
  });

  test('the context served may be shorter than the model’s', async () => {
    await open({ contextLength: 64 });
    await bench.enqueue(chatJob({ maxTokens: 1_000 }));
    const { prompt, maxTokens } = await bench.engine.nextGenerate();
    expect(prompt.length + maxTokens).toBe(64);
  });

  test('a prompt that leaves no room is refused with its size', async () => {
    const messages = [{ role: 'user' as const, content: 'a '.repeat(200) }];
    const text = chatTokenizer.specials.mark(
      `<|im_start|>user\n${messages[0]!.content}<|im_end|>\n<|im_start|>assistant\n`,
    );
    const { length } = await chatTokenizer.encode(text);
    expect(await failureOf({ messages })).toMatchObject({
      type: 'failed',
      error: 'invalidParameter',
      message: `messages: the prompt has ${length} tokens, which leaves no room in the context of 128`,
    });
  });

  test('bytes that never became a character end as U+FFFD', async () => {
    await bench.enqueue(chatJob());
    const request = await bench.engine.nextGenerate();
    const [first] = await tokensOf('你');
    bench.engine.say(request, { token: first!, finish: 'length' });
    await bench.log.ending('request-1');
    expect(bench.log.textOf('request-1')).toBe('\ufffd');
  });
});

describe('stop sequences', () => {
  test('end the choice, keep what follows from being generated, and are not in the text', async () => {
    await bench.enqueue(chatJob({ stop: ['wheel'] }));
    const request = await bench.engine.nextGenerate();
    for (const token of await tokensOf('a mill wheel')) bench.engine.say(request, { token });
    expect(await bench.log.ending('request-1')).toMatchObject({ type: 'done' });
    expect(bench.log.textOf('request-1')).toBe('a mill ');
    expect(bench.log.framesOf('request-1').find(({ type }) => type === 'finish')).toMatchObject({
      reason: 'stop',
    });
    expect(bench.engine.cancelled).toEqual([{ id: request.id, choice: undefined }]);
  });

  test('tokens of the step under way are neither text nor counted', async () => {
    await bench.enqueue(chatJob({ stop: ['a'] }));
    const request = await bench.engine.nextGenerate();
    const [a, b] = [...(await tokensOf('a')), ...(await tokensOf('b'))];
    bench.engine.say(request, { token: a! });
    bench.engine.say(request, { token: b! });
    expect(await bench.log.ending('request-1')).toMatchObject({ spent: { completionTokens: 1 } });
    expect(bench.log.textOf('request-1')).toBe('');
  });

  test('what only began like one is sent at the end', async () => {
    await bench.enqueue(chatJob({ stop: ['mill stone'] }));
    const request = await bench.engine.nextGenerate();
    await sayAll(request, 'a mill');
    await bench.log.ending('request-1');
    expect(bench.log.textOf('request-1')).toBe('a mill');
  });

  test('one in the last token of the length is a stop', async () => {
    await bench.enqueue(chatJob({ stop: ['a'] }));
    const [a] = await tokensOf('a');
    bench.engine.say(await bench.engine.nextGenerate(), { token: a!, finish: 'length' });
    await bench.log.ending('request-1');
    expect(bench.log.framesOf('request-1').find(({ type }) => type === 'finish')).toMatchObject({
      reason: 'stop',
    });
    expect(bench.engine.cancelled).toEqual([]);
  });
});

describe('several choices', () => {
  test('each has its text and its end, and done follows the last', async () => {
    await bench.enqueue(chatJob({ n: 2 }));
    const request = await bench.engine.nextGenerate();
    expect(request.choices).toBe(2);
    const [a, b] = [...(await tokensOf('a')), ...(await tokensOf('b'))];
    bench.engine.admit(request);
    bench.engine.say(request, { token: a!, choice: 0 }, { token: b!, choice: 1 });
    bench.engine.say(request, { token: end, choice: 0, finish: 'end' }, { token: b!, choice: 1 });
    bench.engine.say(request, { token: a!, choice: 1, finish: 'length' });
    expect(await bench.log.ending('request-1')).toMatchObject({
      spent: { promptTokens: request.prompt.length, completionTokens: 5 },
    });
    expect(bench.log.textOf('request-1', 0)).toBe('a');
    expect(bench.log.textOf('request-1', 1)).toBe('bba');
    expect(
      bench.log
        .framesOf('request-1')
        .flatMap((frame) => (frame.type === 'finish' ? [[frame.choice, frame.reason]] : [])),
    ).toEqual([
      [0, 'stop'],
      [1, 'length'],
    ]);
  });

  test('one that a stop sequence ended leaves the engine alone', async () => {
    await bench.enqueue(chatJob({ n: 2, stop: ['a'] }));
    const request = await bench.engine.nextGenerate();
    const [a, b] = [...(await tokensOf('a')), ...(await tokensOf('b'))];
    bench.engine.say(request, { token: a!, choice: 0 }, { token: b!, choice: 1 });
    expect(bench.engine.cancelled).toEqual([{ id: request.id, choice: 0 }]);
    bench.engine.say(request, { token: b!, choice: 0 });
    bench.engine.say(request, { token: end, choice: 1, finish: 'end' });
    expect(await bench.log.ending('request-1')).toMatchObject({
      type: 'done',
      spent: { completionTokens: 3 },
    });
    expect(bench.log.textOf('request-1', 0)).toBe('');
  });
});

describe('sampling', () => {
  const samplingOf = async (fields: Parameters<typeof chatJob>[0]) => {
    await bench.enqueue(chatJob(fields));
    return (await bench.engine.nextGenerate()).sampling;
  };

  test('the contract’s defaults', async () => {
    expect(await samplingOf({})).toEqual({
      temperature: 0.7,
      topP: 0.7,
      topK: 50,
      minP: 0,
      frequencyPenalty: 0,
      presencePenalty: 0,
      seed: expect.any(Number),
      logitBias: [],
    });
  });

  test('the temperature of the model’s authors comes before the contract’s', async () => {
    await open({ manifest: { ...decoderManifest, generation: { temperature: 0.2, topP: 0.9, topK: 7 } } });
    expect(await samplingOf({})).toMatchObject({ temperature: 0.2, topP: 0.7, topK: 50 });
  });

  test('the request’s own values come first', async () => {
    await open({ manifest: { ...decoderManifest, generation: { temperature: 0.2 } } });
    const values = {
      temperature: 0,
      topP: 1,
      topK: -1,
      minP: 0.1,
      frequencyPenalty: 1,
      presencePenalty: -1,
      seed: -7,
    };
    expect(await samplingOf({ ...values, logitBias: { '7': -100, '11': 2.5 } })).toEqual({
      ...values,
      logitBias: [
        [7, -100],
        [11, 2.5],
      ],
    });
  });

  test('requests without a seed get different ones', async () => {
    const first = await samplingOf({ id: 'a' });
    const second = await samplingOf({ id: 'b' });
    expect(first.seed).not.toBe(second.seed);
  });

  test('a biased token outside the vocabulary is refused', async () => {
    expect(await failureOf({ logitBias: { '512': 1 } })).toMatchObject({
      type: 'failed',
      error: 'invalidParameter',
      message: 'logit_bias: token 512 is outside the vocabulary of 512',
    });
  });
});

describe('log-probabilities', () => {
  test('name each token with its bytes and its alternatives', async () => {
    await bench.enqueue(chatJob({ topLogprobs: 2 }));
    const request = await bench.engine.nextGenerate();
    expect(request.topLogprobs).toBe(2);
    const [a] = await tokensOf('a');
    bench.engine.say(request, {
      token: a!,
      logprob: -0.5,
      topLogprobs: [
        { token: a!, logprob: -0.5 },
        { token: end, logprob: -2 },
      ],
      finish: 'length',
    });
    await bench.log.ending('request-1');
    expect(bench.log.framesOf('request-1').find(({ type }) => type === 'delta')).toMatchObject({
      text: 'a',
      logprobs: [
        {
          token: 'a',
          bytes: [97],
          logprob: -0.5,
          top_logprobs: [
            { token: 'a', bytes: [97], logprob: -0.5 },
            { token: '<|im_end|>', bytes: [...new TextEncoder().encode('<|im_end|>')], logprob: -2 },
          ],
        },
      ],
    });
  });

  test('are left out where they are not asked for', async () => {
    await bench.enqueue(chatJob());
    const request = await bench.engine.nextGenerate();
    expect(request.topLogprobs).toBeUndefined();
    await sayAll(request, 'a');
    await bench.log.ending('request-1');
    for (const frame of bench.log.frames) expect(frame).not.toHaveProperty('logprobs');
  });
});

test('what a template refuses is refused in its words', async () => {
  await open({ manifest: { ...decoderManifest, chatTemplate: "{{ raise_exception('no system role') }}" } });
  expect(await failureOf({})).toMatchObject({
    type: 'failed',
    error: 'invalidParameter',
    message: 'messages: no system role',
  });
});

test('a template that makes nothing is refused, not run', async () => {
  await open({ manifest: { ...decoderManifest, chatTemplate: '{# nothing #}' } });
  expect(await failureOf({})).toMatchObject({ type: 'failed', error: 'invalidParameter' });
});

test('what goes wrong inside is not told to clients', async () => {
  await open({ manifest: { ...decoderManifest, chatTemplate: '{{ nothing() }}' } });
  expect(frameSchema.parse(await failureOf({}))).toMatchObject({
    type: 'failed',
    error: 'internal',
    message: 'Unknown error.',
  });
});

test('a request that the engine gives up fails, and others go on', async () => {
  const [first, second] = await bench.generating(chatJob({ id: 'a' }), chatJob({ id: 'b' }));
  bench.engine.step([{ type: 'failed', id: first.id, reason: 'the model failed to run' }]);
  expect(await bench.log.ending('a')).toMatchObject({
    type: 'failed',
    error: 'internal',
    message: 'Unknown error.',
  });
  await sayAll(second, 'a');
  expect(await bench.log.ending('b')).toMatchObject({ type: 'done' });
});
