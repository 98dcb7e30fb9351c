import { fc } from '../../support/property.js';

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Text that JSON.stringify cannot write: where a string says so, the raw text takes the place of it and its quotes. */
const raw = (text: string) => `\u{F0000}${text}\u{F0001}`;
const rawText = /"\u{F0000}(.*?)\u{F0001}"/gsu;

/** Most fields are left out most of the time: a request with all of them is refused for one or another. */
const maybe = <T>(arbitrary: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 7, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });

const text = fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: 'grapheme', maxLength: 20 }) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 20 }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('', ' ', '\ud800', 'a\udc00b', '\0', '文字', '<|im_end|>', '__proto__'),
  },
);
const filled = text.map((value) => value || 'a');

const content = fc.oneof(
  text,
  fc.array(
    fc.oneof(
      { weight: 9, arbitrary: fc.record({ type: fc.constant('text'), text }) },
      {
        weight: 1,
        arbitrary: fc.record({ type: fc.constant('image_url'), image_url: fc.record({ url: text }) }),
      },
    ),
    { minLength: 1, maxLength: 3 },
  ),
);

const toolName = fc.stringMatching(/^[a-zA-Z0-9_-]{1,64}$/);

const message = fc.oneof(
  fc.record(
    { role: fc.constantFrom('system', 'developer', 'user'), content, name: fc.option(text) },
    { requiredKeys: ['role', 'content'] },
  ),
  fc.record(
    {
      role: fc.constant('assistant'),
      content: fc.option(content),
      tool_calls: fc.array(
        fc.record({
          id: text,
          type: fc.constant('function'),
          function: fc.record({ name: toolName, arguments: fc.json() }),
        }),
        { minLength: 1, maxLength: 2 },
      ),
    },
    { requiredKeys: ['role', 'content', 'tool_calls'] },
  ),
  fc.record({ role: fc.constant('tool'), content, tool_call_id: text }),
);

const jsonSchema = fc.oneof(
  fc.constant({ type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }),
  fc.constant({ type: 'array', items: { enum: ['x', 1, null] } }),
  fc.dictionary(text, fc.jsonValue({ maxDepth: 3 }), { maxKeys: 4 }),
);

const chat = fc.record(
  {
    model: fc.constantFrom(
      'tiny-chat',
      'tiny-chat',
      'tiny-chat',
      'owner/seeing-chat',
      'tiny-rerank',
      'nobody',
    ),
    messages: fc.array(message, { minLength: 1, maxLength: 4 }),
    stream: maybe(fc.boolean()),
    stream_options: maybe(fc.record({ include_usage: fc.option(fc.boolean()) })),
    max_tokens: maybe(fc.integer({ min: 1, max: 1_000_000 })),
    max_completion_tokens: maybe(fc.integer({ min: 1 })),
    stop: maybe(fc.oneof(filled, fc.array(filled, { maxLength: 4 }))),
    temperature: maybe(fc.double({ min: 0, max: 2, noNaN: true })),
    top_p: maybe(fc.double({ min: 0.001, max: 1, noNaN: true })),
    top_k: maybe(fc.oneof(fc.constant(-1), fc.integer({ min: 1, max: 1000 }))),
    min_p: maybe(fc.double({ min: 0, max: 1, noNaN: true })),
    frequency_penalty: maybe(fc.double({ min: -2, max: 2, noNaN: true })),
    presence_penalty: maybe(fc.double({ min: -2, max: 2, noNaN: true })),
    seed: maybe(fc.maxSafeInteger()),
    n: maybe(fc.integer({ min: 1, max: 16 })),
    logprobs: maybe(fc.boolean()),
    top_logprobs: maybe(fc.integer({ min: 0, max: 20 })),
    logit_bias: maybe(
      fc.dictionary(fc.nat().map(String), fc.double({ min: -100, max: 100, noNaN: true }), { maxKeys: 3 }),
    ),
    response_format: maybe(
      fc.oneof(
        fc.constantFrom({ type: 'text' }, { type: 'json_object' }),
        fc.record({
          type: fc.constant('json_schema'),
          json_schema: fc.record({ name: text, schema: jsonSchema }),
        }),
      ),
    ),
    tools: maybe(
      fc.uniqueArray(
        fc.record({
          type: fc.constant('function'),
          function: fc.record(
            { name: toolName, description: fc.option(text), parameters: fc.option(jsonSchema) },
            { requiredKeys: ['name'] },
          ),
        }),
        { maxLength: 3, selector: (tool) => tool.function.name },
      ),
    ),
    tool_choice: maybe(fc.constantFrom('none', 'auto')),
    parallel_tool_calls: maybe(fc.boolean()),
    user: maybe(text),
    metadata: maybe(fc.dictionary(text, fc.jsonValue({ maxDepth: 3 }), { maxKeys: 3 })),
  },
  { requiredKeys: ['model', 'messages'] },
);

const rerank = fc.record(
  {
    model: fc.constantFrom('tiny-rerank', 'tiny-rerank', 'tiny-rerank', 'tiny-chat', 'nobody'),
    query: filled,
    documents: fc.array(text, { minLength: 1, maxLength: 20 }),
    top_n: maybe(fc.integer({ min: 1 })),
    return_documents: maybe(fc.boolean()),
    max_chunks_per_doc: maybe(fc.integer({ min: 1 })),
    overlap_tokens: maybe(fc.integer({ min: 0, max: 80 })),
  },
  { requiredKeys: ['model', 'query', 'documents'] },
);

/** What somebody's program may put in the place of something else. */
const odd: fc.Arbitrary<Json | undefined> = fc.oneof(
  fc.constantFrom<Json | undefined>(
    undefined,
    null,
    true,
    false,
    0,
    1,
    -1,
    0.5,
    '',
    '1',
    'true',
    'null',
    [],
    {},
    [[]],
    [null],
  ),
  fc.constantFrom(
    ...[
      '-0',
      '1e400',
      '-1e400',
      '9007199254740993',
      '1e-400',
      'NaN',
      'undefined',
      '0x10',
      '01',
      '.5',
      '"\\ud800"',
    ].map(raw),
    raw('['.repeat(10_000) + ']'.repeat(10_000)),
    raw(`${'{"a":'.repeat(200)}1${'}'.repeat(200)}`),
    raw('{"__proto__":{"role":"user"},"constructor":1,"toString":2,"role":"user"}'),
    raw('{"role":"user","role":"tool","content":"a","content":null}'),
    raw(`"${'x'.repeat(100_000)}"`),
    raw(`[${'0,'.repeat(20_000)}0]`),
  ),
  fc.double(),
  text,
  fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<Json>,
);

/** Takes `steps` into a value, as far as it goes, and puts something else there; undefined takes away. */
function mutate(value: Json, steps: readonly number[], replacement: Json | undefined): Json {
  const [step, ...others] = steps;
  const keys = typeof value === 'object' && value !== null ? Object.keys(value) : [];
  if (step === undefined || keys.length === 0) return replacement ?? null;
  const key = keys[step % keys.length]!;
  const inner = (value as Record<string, Json>)[key]!;
  const changed = others.length === 0 ? replacement : mutate(inner, others, replacement);
  if (Array.isArray(value)) {
    return changed === undefined ? value.toSpliced(Number(key), 1) : value.with(Number(key), changed);
  }
  const { [key]: _gone, ...rest } = value as Record<string, Json>;
  return changed === undefined ? rest : { ...rest, [key]: changed };
}

const mutation = fc.record({
  steps: fc.array(fc.nat({ max: 1_000 }), { minLength: 1, maxLength: 5 }),
  replacement: odd,
});

/** Damage to the text itself. */
const damage = fc.oneof(
  { weight: 12, arbitrary: fc.constant((json: string) => json) },
  {
    weight: 1,
    arbitrary: fc.nat().map((at) => (json: string) => json.slice(0, at % (json.length + 1))),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.nat(), fc.constantFrom('"', '{', ']', ',', '\\', '\0', '\ufeff', 'NaN', '//'))
      .map(([at, piece]) => (json: string) => {
        const place = at % (json.length + 1);
        return json.slice(0, place) + piece + json.slice(place);
      }),
  },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(
        '"model":5',
        '"model":"tiny-chat"',
        '"__proto__":{"stream":true}',
        '"surprise":[{}]',
        '"stream":null',
      )
      .map((field) => (json: string) => json.replace('{', `{${field},`)),
  },
);

/** Valid requests with at most three things wrong with them, and now and then nothing that was meant as one. */
function bodiesFrom(valid: fc.Arbitrary<object>): fc.Arbitrary<string> {
  const mutated = fc
    .tuple(valid, fc.oneof(fc.constant([]), fc.array(mutation, { minLength: 1, maxLength: 3 })), damage)
    .map(([value, mutations, damaged]) => {
      const changed = mutations.reduce<Json>(
        (json, { steps, replacement }) => mutate(json, steps, replacement),
        value as Json,
      );
      return damaged(
        JSON.stringify(changed).replace(rawText, (_, verbatim: string) => JSON.parse(`"${verbatim}"`)),
      );
    });
  return fc.oneof(
    { weight: 20, arbitrary: mutated },
    { weight: 1, arbitrary: fc.json() },
    { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
  );
}

/** Bodies of requests to the two operations, as text. */
export const requestBodies = { chat: bodiesFrom(chat), rerank: bodiesFrom(rerank) };
