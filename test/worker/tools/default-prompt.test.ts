import { describe, expect, it } from 'vitest';
import type { Message, Tool, ToolCall } from '../../../src/contract/chat.js';
import { describeTools, spellCalls } from '../../../src/worker/tools/default-prompt.js';

const schema = { type: 'object', properties: { city: { type: 'string' } } };
const tools: Tool[] = [
  {
    type: 'function',
    function: { name: 'weather', description: 'The weather of a city.', parameters: schema, strict: true },
  },
  { type: 'function', function: { name: 'now', description: undefined, parameters: undefined } },
];
const prompt = [
  'You can call these functions:',
  '<tools>',
  '{"name":"weather","description":"The weather of a city.","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}',
  '{"name":"now","parameters":{"type":"object","properties":{}}}',
  '</tools>',
  'To call one, write:',
  '<tool_call>',
  '{"name": <name>, "arguments": <object>}',
  '</tool_call>',
].join('\n');

const user = (content: string): Message => ({ role: 'user', content });
const call = (id: string, args: string): ToolCall => ({
  id,
  type: 'function',
  function: { name: 'weather', arguments: args },
});

describe('a prompt for a template that cannot show tools', () => {
  it('describes them in a system message of its own', () => {
    expect(describeTools([user('Hi')], tools)).toEqual([{ role: 'system', content: prompt }, user('Hi')]);
  });

  it.each(['system', 'developer'] as const)('describes them behind what the %s message says', (role) => {
    expect(describeTools([{ role, content: 'Be brief.' }, user('Hi')], tools)).toEqual([
      { role, content: `Be brief.\n\n${prompt}` },
      user('Hi'),
    ]);
  });

  it('describes them behind a system message of several parts', () => {
    const content = [
      { type: 'text' as const, text: 'Be brief.' },
      { type: 'text' as const, text: 'Be kind.' },
    ];
    expect(describeTools([{ role: 'system', content }], tools)).toEqual([
      { role: 'system', content: `Be brief.\nBe kind.\n\n${prompt}` },
    ]);
  });
});

describe('a conversation for a template that cannot show calls', () => {
  it('has them in the text of the assistant, and their results in one message of the user', () => {
    const messages: Message[] = [
      user('Weather?'),
      {
        role: 'assistant',
        content: 'Let me see.',
        tool_calls: [call('1', '{"city":"Oslo"}'), call('2', '{}')],
      },
      { role: 'tool', tool_call_id: '1', content: 'rain' },
      { role: 'tool', tool_call_id: '2', content: [{ type: 'text', text: 'sun' }] },
      { role: 'assistant', content: 'Rain and sun.' },
      user('Thanks'),
    ];
    expect(spellCalls(messages)).toEqual([
      user('Weather?'),
      {
        role: 'assistant',
        content: [
          'Let me see.',
          '<tool_call>\n{"name": "weather", "arguments": {"city":"Oslo"}}\n</tool_call>',
          '<tool_call>\n{"name": "weather", "arguments": {}}\n</tool_call>',
        ].join('\n'),
      },
      user('<tool_response>\nrain\n</tool_response>\n<tool_response>\nsun\n</tool_response>'),
      { role: 'assistant', content: 'Rain and sun.' },
      user('Thanks'),
    ]);
  });

  it.each([null, ''])('has calls alone where the assistant said nothing else (%j)', (content) => {
    expect(spellCalls([{ role: 'assistant', content, tool_calls: [call('1', '{}')] }])).toEqual([
      { role: 'assistant', content: '<tool_call>\n{"name": "weather", "arguments": {}}\n</tool_call>' },
    ]);
  });

  it('has the results at its end', () => {
    expect(spellCalls([{ role: 'tool', tool_call_id: '1', content: 'rain' }])).toEqual([
      user('<tool_response>\nrain\n</tool_response>'),
    ]);
  });
});
