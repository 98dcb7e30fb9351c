import { describe, expect, it } from 'vitest';
import type { Tool } from '../../../src/contract/chat.js';
import { bytesOfToken } from '../../../src/engine/grammar.js';
import { GrammarCache } from '../../../src/engine/grammar-cache.js';
import { RuleBook } from '../../../src/worker/grammar/rule-book.js';
import { vocabularyOf } from '../../../src/worker/grammar/vocabulary.js';
import type { ToolFormat } from '../../../src/worker/tools/tool-format.js';
import { callsOnly, textOrCalls, writeCalls } from '../../../src/worker/tools/tool-grammar.js';
import { chatTokenizer, decoderManifest } from '../support/workbench.js';
import { formats } from './formats.js';

const vocabulary = vocabularyOf({
  tokenizer: chatTokenizer,
  manifest: decoderManifest,
  spelledTokens: new Set(),
});
const cache = new GrammarCache(vocabulary);
const tokenOfByte = new Map(
  Array.from({ length: vocabulary.size }, (_, token) => [token, bytesOfToken(vocabulary, token)] as const)
    .filter(([, bytes]) => bytes.length === 1)
    .map(([token, [byte]]) => [byte, token]),
);
const [end] = vocabulary.endTokens as [number];

const tool = (name: string, more: Partial<Tool['function']> = {}): Tool => ({
  type: 'function',
  function: { name, description: undefined, parameters: undefined, ...more },
});
const integer = { type: 'object', properties: { x: { type: 'integer' } }, required: ['x'] };
const tools = [
  tool('a', { parameters: integer, strict: true }),
  tool('b', { parameters: integer }),
  tool('c'),
];

type Choice = 'auto' | 'required';
interface Rules {
  readonly format: ToolFormat;
  readonly choice: Choice;
  readonly parallel?: boolean;
}

/** How much of a text a reply under these rules may begin with, and whether it may end there. */
async function follow(text: string, { format, choice, parallel = true }: Rules) {
  const book = new RuleBook();
  const calls = writeCalls(
    tools.map((placed, index) => ({ tool: placed, index })),
    { format, parallel, book },
  );
  const grammar = book.grammar(
    choice === 'auto' ? textOrCalls(calls, format, book) : callsOnly(calls, format),
  );
  const follower = await cache.follow(grammar);
  const isAllowed = async (token: number) =>
    (((await follower.allowed())[token >> 5]! >>> (token & 31)) & 1) === 1;
  try {
    const bytes = Buffer.from(text);
    for (const [index, byte] of bytes.entries()) {
      const token = tokenOfByte.get(byte)!;
      if (!(await isAllowed(token))) return { taken: bytes.toString('utf8', 0, index), ends: false };
      follower.accept(token);
    }
    return { taken: text, ends: await isAllowed(end) };
  } finally {
    follower.dispose();
  }
}

/** The text of calls in a format. */
const spellings: Record<keyof typeof formats, (...calls: [name: string, args: string][]) => string> = {
  hermes: (...calls) =>
    calls
      .map(([name, args]) => `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`)
      .join('\n'),
  llama: (...calls) => calls.map(([name, args]) => `{"name": "${name}", "parameters": ${args}}`).join('; '),
  singleLlama: (...calls) =>
    calls.map(([name, args]) => `{"name": "${name}", "parameters": ${args}}`).join('; '),
  mistral: (...calls) =>
    `[TOOL_CALLS][${calls.map(([name, args]) => `{"name": "${name}", "arguments": ${args}}`).join(', ')}]`,
};
const families = Object.keys(formats) as (keyof typeof formats)[];
const choices: Choice[] = ['auto', 'required'];
const each = families.flatMap((family) => choices.map((choice) => [family, choice] as const));

describe.each(each)('calls as %s writes them, where tool_choice is %s', (family, choice) => {
  const format = formats[family];
  const spell = spellings[family];
  const rules = { format, choice };

  it('may be one', async () => {
    expect(await follow(spell(['a', '{"x": 7}']), rules)).toMatchObject({ ends: true });
  });

  it('may be several where the family can', async () => {
    const text = spell(['a', '{"x": 7}'], ['c', '{}'], ['b', '{"x": -1}']);
    expect(await follow(text, rules)).toMatchObject({ ends: format.parallel });
  });

  it('are one where parallel_tool_calls is false', async () => {
    expect(await follow(spell(['c', '{}']), { ...rules, parallel: false })).toMatchObject({ ends: true });
    const two = spell(['c', '{}'], ['c', '{}']);
    expect(await follow(two, { ...rules, parallel: false })).toMatchObject({ ends: false });
  });

  it.each([
    ['a function that there is not', 'd', '{}'],
    ['a wrong type', 'a', '{"x": "7"}'],
    ['a missing property', 'a', '{}'],
    ['an additional property of a strict function', 'a', '{"x": 7, "y": 1}'],
    ['arguments of a function that has none', 'c', '{"x": 7}'],
    ['arguments that are no object', 'b', '[]'],
  ])('cannot have %s', async (_what, name, args) => {
    const { taken, ends } = await follow(spell([name, args]), rules);
    expect(ends).toBe(false);
    expect(taken).not.toContain(args);
  });

  it('may have an additional property where the function is not strict', async () => {
    expect(await follow(spell(['b', '{"x": 7, "y": 1}']), rules)).toMatchObject({ ends: true });
  });
});

describe('a reply that may call', () => {
  it.each(families)('may be text alone, as %s writes it', async (family) => {
    const format = formats[family];
    for (const text of ['', 'It rains: <b>, [1], {2}.', '<tool', '[TOOL', '字🚀\n\n']) {
      expect(await follow(text, { format, choice: 'auto' }), text).toEqual({ taken: text, ends: true });
    }
  });

  it.each(families)('may begin with text, as %s writes it', async (family) => {
    const format = formats[family];
    const call = spellings[family](['c', '{}']);
    const marked = call.startsWith(format.marker) ? call : format.marker + call;
    const text = `Let me see.\n${marked}`;
    expect(await follow(text, { format, choice: 'auto' })).toEqual({ taken: text, ends: true });
    expect(await follow(text, { format, choice: 'required' })).toEqual({ taken: '', ends: false });
  });

  it.each(families)('has no text behind its calls, as %s writes it', async (family) => {
    const text = spellings[family](['c', '{}']);
    const { taken } = await follow(`${text}Done.`, { format: formats[family], choice: 'auto' });
    expect(taken).toBe(text);
  });

  it.each(families)('cannot end where it must call, as %s writes it', async (family) => {
    expect(await follow('', { format: formats[family], choice: 'required' })).toEqual({
      taken: '',
      ends: false,
    });
  });
});
