import { describe, expect, it } from 'vitest';
import { besideJson, type ToolFormat } from '../../../src/worker/tools/tool-format.js';
import { type ReplyPart, ToolParser } from '../../../src/worker/tools/tool-parser.js';
import { fc } from '../../support/property.js';
import { formats } from './formats.js';

/** What the parts add up to. */
interface Reply {
  readonly content: string;
  readonly calls: readonly { readonly name: string; readonly arguments: string }[];
}

function parse(format: ToolFormat, pieces: readonly string[]): Reply {
  const parser = new ToolParser(format);
  const parts: ReplyPart[] = [...pieces.flatMap((piece) => parser.push(piece)), ...parser.flush()];
  let content = '';
  const calls: { name: string; arguments: string }[] = [];
  for (const part of parts) {
    switch (part.type) {
      case 'content':
        expect(part.text).not.toBe('');
        content += part.text;
        break;
      case 'call':
        expect(part.index).toBe(calls.length);
        calls.push({ name: part.name, arguments: '' });
        break;
      case 'arguments':
        expect(part.text).not.toBe('');
        expect(part.index).toBe(calls.length - 1);
        calls[part.index]!.arguments += part.text;
        break;
      default:
        part satisfies never;
    }
  }
  expect(parser.calls).toBe(calls.length);
  return { content, calls };
}

const { hermes, llama, mistral } = formats;
const spiky = '{"city": "S\\u00e3o {\\"Paulo\\"} \\\\", "等": ["}]", {"👩‍👩‍👧": {}}], "n": -1.5e3}';
const a = { name: 'a', arguments: '{"x": 1}' };
const b = { name: 'b-2', arguments: spiky };

const replies: [string, ToolFormat, string, Reply][] = [
  ['text', hermes, 'It is raining.', { content: 'It is raining.', calls: [] }],
  ['nothing', hermes, '', { content: '', calls: [] }],
  ['white space', hermes, ' \n', { content: ' \n', calls: [] }],
  ['text behind white space', llama, '\n It rains.', { content: '\n It rains.', calls: [] }],
  [
    'a call between its tags',
    hermes,
    '<tool_call>\n{"name": "a", "arguments": {"x": 1}}\n</tool_call>',
    { content: '', calls: [a] },
  ],
  [
    'a call without spaces',
    hermes,
    '<tool_call>{"name":"a","arguments":{"x": 1}}</tool_call>',
    { content: '', calls: [a] },
  ],
  [
    'a call behind white space',
    hermes,
    '\n\n<tool_call>\n{"name": "a", "arguments": {"x": 1}}\n</tool_call>',
    { content: '', calls: [a] },
  ],
  [
    'text and then a call',
    hermes,
    'Let me see. <tool_call>\n{"name": "a", "arguments": {"x": 1}}\n</tool_call>',
    { content: 'Let me see. ', calls: [a] },
  ],
  [
    'two calls',
    hermes,
    `<tool_call>\n{"name": "a", "arguments": {"x": 1}}\n</tool_call>\n<tool_call>\n{"name": "b-2", "arguments": ${spiky}}\n</tool_call>`,
    { content: '', calls: [a, b] },
  ],
  [
    'white space behind the last call, which is nobody’s text',
    hermes,
    '<tool_call>{"name": "a", "arguments": {"x": 1}}</tool_call>\n ',
    { content: '', calls: [a] },
  ],
  [
    'an empty object',
    hermes,
    '<tool_call>{"name": "a", "arguments": {}}</tool_call>',
    { content: '', calls: [{ name: 'a', arguments: '{}' }] },
  ],
  ['what looks like a tag', hermes, 'if a <tool_calls> b', { content: 'if a <tool_calls> b', calls: [] }],
  ['the beginning of a tag at the end', hermes, 'use <tool_ca', { content: 'use <tool_ca', calls: [] }],
  ['nothing but the beginning of a tag', hermes, '<tool_call', { content: '<tool_call', calls: [] }],
  [
    'a tag that begins twice',
    hermes,
    '<tool_<tool_call>{"name": "a", "arguments": {"x": 1}}',
    { content: '<tool_', calls: [a] },
  ],
  [
    'JSON where it is text',
    hermes,
    '{"name": "a", "arguments": {"x": 1}}',
    { content: '{"name": "a", "arguments": {"x": 1}}', calls: [] },
  ],
  ['another family’s mark', hermes, '[TOOL_CALLS] [{}]', { content: '[TOOL_CALLS] [{}]', calls: [] }],

  ['a bare call', llama, '{"name": "a", "parameters": {"x": 1}}', { content: '', calls: [a] }],
  [
    'a marked call',
    llama,
    '<|python_tag|>{"name": "a", "parameters": {"x": 1}}',
    { content: '', calls: [a] },
  ],
  [
    'two bare calls',
    llama,
    `{"name": "a", "parameters": {"x": 1}}; {"name": "b-2", "parameters": ${spiky}}`,
    { content: '', calls: [a, b] },
  ],
  [
    'text and then a marked call',
    llama,
    'Well, <|python_tag|>{"name": "a", "parameters": {"x": 1}}',
    { content: 'Well, ', calls: [a] },
  ],
  ['a brace inside text', llama, 'Well, {"name": "a"}', { content: 'Well, {"name": "a"}', calls: [] }],
  ['the beginning of a mark', llama, '<|pyth', { content: '<|pyth', calls: [] }],
  [
    'JSON where the text is JSON',
    besideJson(llama),
    '{"name": "a", "parameters": {}}',
    { content: '{"name": "a", "parameters": {}}', calls: [] },
  ],
  [
    'a marked call where the text is JSON',
    besideJson(llama),
    '<|python_tag|>{"name": "a", "parameters": {"x": 1}}',
    { content: '', calls: [a] },
  ],

  [
    'an array of one call',
    mistral,
    '[TOOL_CALLS][{"name": "a", "arguments": {"x": 1}}]',
    { content: '', calls: [a] },
  ],
  [
    'an array of two calls',
    mistral,
    `[TOOL_CALLS] [{"name": "a", "arguments": {"x": 1}}, {"name": "b-2", "arguments": ${spiky}}]`,
    { content: '', calls: [a, b] },
  ],
  [
    'text and then an array',
    mistral,
    'Yes.[TOOL_CALLS][{"name": "a", "arguments": {"x": 1}}]',
    { content: 'Yes.', calls: [a] },
  ],
  ['brackets inside text', mistral, 'see [TOOL] and [1]', { content: 'see [TOOL] and [1]', calls: [] }],

  ['a call cut off in its mark', mistral, 'Yes.[TOOL_CALLS]', { content: 'Yes.', calls: [] }],
  ['a call cut off in its name', hermes, '<tool_call>\n{"name": "get', { content: '', calls: [] }],
  ['a call cut off before its arguments', llama, '{"name": "a", "parameters":', { content: '', calls: [] }],
  [
    'a call cut off in its arguments',
    hermes,
    '<tool_call>{"name": "a", "arguments": {"x": "}',
    { content: '', calls: [{ name: 'a', arguments: '{"x": "}' }] },
  ],
  [
    'a second call cut off',
    mistral,
    '[TOOL_CALLS][{"name": "a", "arguments": {"x": 1}}, {"na',
    { content: '', calls: [a] },
  ],
];

describe('a parser of replies with calls', () => {
  it.each(replies)('takes %s for what it is', (_what, format, text, expected) => {
    expect(parse(format, [text])).toEqual(expected);
  });

  it.each(replies)('takes %s for the same wherever it is cut in two', (_what, format, text, expected) => {
    for (let at = 0; at <= text.length; at++) {
      expect(parse(format, [text.slice(0, at), text.slice(at)]), `cut at ${at}`).toEqual(expected);
    }
  });

  it.each(replies)('takes %s for the same character by character', (_what, format, text, expected) => {
    expect(parse(format, text.split(''))).toEqual(expected);
  });

  it('takes calls with any arguments for the same wherever they are cut', () => {
    const names = fc.stringMatching(/^[a-zA-Z0-9_-]{1,64}$/);
    const values = fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue());
    fc.assert(
      fc.property(
        fc.array(fc.tuple(names, values), { minLength: 1, maxLength: 3 }),
        fc.array(fc.nat(), { maxLength: 5 }),
        (called, cuts) => {
          const calls = called.map(([name, value]) => ({ name, arguments: JSON.stringify(value) }));
          const written = calls.map((call) => `{"name":"${call.name}","arguments":${call.arguments}}`);
          const text = written.map((call) => `<tool_call>\n${call}\n</tool_call>`).join('\n');
          const places = [0, ...cuts.map((cut) => cut % text.length).sort((x, y) => x - y), text.length];
          const pieces = places.slice(1).map((end, index) => text.slice(places[index], end));
          expect(parse(hermes, pieces)).toEqual({ content: '', calls });
        },
      ),
    );
  });

  it('gives text as soon as it can be no call', () => {
    const parser = new ToolParser(hermes);
    expect(parser.push('a <tool')).toEqual([{ type: 'content', text: 'a ' }]);
    expect(parser.push('box>')).toEqual([{ type: 'content', text: '<toolbox>' }]);
  });

  it('gives no text where there can only be calls, wherever they are cut off', () => {
    const text = '<tool_call>\n{"name": "a", "arguments": {"x": 1}}\n</tool_call>';
    for (let length = 0; length <= text.length; length++) {
      const parser = new ToolParser(hermes, true);
      const parts = [...parser.push(text.slice(0, length)), ...parser.flush()];
      expect(parts.filter(({ type }) => type === 'content')).toEqual([]);
      expect(parser.calls).toBe(length > text.indexOf('{"x"') ? 1 : 0);
    }
  });

  it('gives a call once its arguments begin, and its arguments as they come', () => {
    const parser = new ToolParser(hermes);
    expect(parser.push('<tool_call>\n{"name": "a", "arguments": ')).toEqual([]);
    expect(parser.push('{"x": "')).toEqual([
      { type: 'call', index: 0, name: 'a' },
      { type: 'arguments', index: 0, text: '{"x": "' },
    ]);
    expect(parser.push('{1')).toEqual([{ type: 'arguments', index: 0, text: '{1' }]);
    expect(parser.push('"}}\n</tool_call>')).toEqual([{ type: 'arguments', index: 0, text: '"}' }]);
  });
});
