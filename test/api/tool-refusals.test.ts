import { describe, expect, it } from 'vitest';
import { validate } from '../../src/api/validate.js';
import { chatRequestSchema } from '../../src/contract/chat.js';

const user = { role: 'user', content: 'Weather?' };
const fn = (name: unknown, more: object = {}) => ({ type: 'function', function: { name, ...more } });
const weather = fn('weather');
const call = { id: 'a', type: 'function', function: { name: 'weather', arguments: '{}' } };
const said = (...tool_calls: unknown[]) => ({
  messages: [user, { role: 'assistant', content: null, tool_calls }],
});
const answered = (fields: object) => ({ messages: [user, { role: 'tool', content: 'rain', ...fields }] });

function refusalOf(fields: object): string {
  try {
    validate(chatRequestSchema, { model: 'm', messages: [user], ...fields });
  } catch (error) {
    return (error as Error).message;
  }
  return 'accepted';
}

describe('tools', () => {
  it.each([
    [{ tools: weather }, 'tools: must be an array, not an object'],
    [{ tools: ['weather'] }, 'tools[0]: must be an object, not a string'],
    [{ tools: [{ function: { name: 'a' } }] }, 'tools[0].type: is required'],
    [{ tools: [{ type: 'retrieval' }] }, 'tools[0].type: must be "function"'],
    [{ tools: [{ type: 'function' }] }, 'tools[0].function: is required'],
    [{ tools: [{ type: 'function', name: 'a' }] }, 'tools[0].function: is required'],
    [{ tools: [{ type: 'function', function: {} }] }, 'tools[0].function.name: is required'],
    [{ tools: [weather, fn(5)] }, 'tools[1].function.name: must be a string, not 5'],
    [{ tools: [fn('')] }, 'tools[0].function.name: must match ^[a-zA-Z0-9_-]{1,64}$'],
    [{ tools: [fn('n'.repeat(65))] }, 'tools[0].function.name: must match ^[a-zA-Z0-9_-]{1,64}$'],
    [{ tools: [fn('été')] }, 'tools[0].function.name: must match ^[a-zA-Z0-9_-]{1,64}$'],
    [{ tools: [fn('a\n')] }, 'tools[0].function.name: must match ^[a-zA-Z0-9_-]{1,64}$'],
    [{ tools: [weather, weather] }, 'tools[1].function.name: is the name of tools[0] already'],
    [{ tools: [fn('a', { description: 1 })] }, 'tools[0].function.description: must be a string, not 1'],
    [
      { tools: [fn('a', { parameters: [] })] },
      'tools[0].function.parameters: must be an object, not an array',
    ],
    [
      { tools: [fn('a', { parameters: '{}' })] },
      'tools[0].function.parameters: must be an object, not a string',
    ],
    [
      { tools: [fn('a', { strict: 'yes' })] },
      'tools[0].function.strict: must be true or false, not a string',
    ],
    [{ tools: Array.from({ length: 129 }, (_, i) => fn(`f${i}`)) }, 'tools: must have at most 128 elements'],
  ])('are refused with their place: %j', (fields, expected) => {
    expect(refusalOf(fields)).toBe(expected);
  });

  it.each([
    { tools: [] },
    { tools: Array.from({ length: 128 }, (_, i) => fn(`f${i}`)) },
    { tools: [fn('A-z_09'), fn('n'.repeat(64))] },
    { tools: [fn('a', { parameters: null, description: null, strict: null })] },
  ])('are taken as the contract says (%#)', (fields) => {
    expect(refusalOf(fields)).toBe('accepted');
  });
});

describe('tool_choice', () => {
  const anyOf = 'must be "none", "auto", "required" or the function to call';

  it.each([
    [{ tool_choice: 'required' }, 'tool_choice: needs tools'],
    [{ tool_choice: 'required', tools: [] }, 'tool_choice: needs tools'],
    [{ tool_choice: weather }, 'tool_choice.function.name: is not the name of a tool'],
    [{ tool_choice: fn('other'), tools: [weather] }, 'tool_choice.function.name: is not the name of a tool'],
    [{ tool_choice: 'any', tools: [weather] }, `tool_choice: ${anyOf}`],
    [{ tool_choice: 1, tools: [weather] }, `tool_choice: ${anyOf}`],
    [{ tool_choice: { type: 'function' }, tools: [weather] }, 'tool_choice.function: is required'],
    [{ tool_choice: { type: 'tool', name: 'a' }, tools: [weather] }, 'tool_choice.type: must be "function"'],
    [{ parallel_tool_calls: 'no' }, 'parallel_tool_calls: must be true or false, not a string'],
  ])('is refused with its place: %j', (fields, expected) => {
    expect(refusalOf(fields)).toBe(expected);
  });

  it.each(['none', 'auto', 'required', weather])('may be %j beside tools', (tool_choice) => {
    expect(refusalOf({ tool_choice, tools: [weather] })).toBe('accepted');
  });

  it.each(['none', 'auto'])('may be %j without tools', (tool_choice) => {
    expect(refusalOf({ tool_choice })).toBe('accepted');
  });
});

describe('calls in a message of the assistant', () => {
  const place = 'messages[1].tool_calls';

  it.each([
    [said(), `${place}: must not be empty`],
    [
      { messages: [{ role: 'assistant', content: null, tool_calls: call }] },
      'messages[0].tool_calls: must be an array, not an object',
    ],
    [said('weather'), `${place}[0]: must be an object, not a string`],
    [said({ ...call, id: undefined }), `${place}[0].id: is required`],
    [said(call, { ...call, id: 7 }), `${place}[1].id: must be a string, not 7`],
    [said({ ...call, type: undefined }), `${place}[0].type: is required`],
    [said({ ...call, type: 'custom' }), `${place}[0].type: must be "function"`],
    [said({ ...call, function: undefined }), `${place}[0].function: is required`],
    [said({ ...call, function: { arguments: '{}' } }), `${place}[0].function.name: is required`],
    [said({ ...call, function: { name: 'a' } }), `${place}[0].function.arguments: is required`],
    [
      said({ ...call, function: { name: 'a', arguments: {} } }),
      `${place}[0].function.arguments: must be a string, not an object`,
    ],
  ])('are refused with their place (%#): %s', (fields, expected) => {
    expect(refusalOf(fields)).toBe(expected);
  });

  it.each([
    said(call),
    said(call, call),
    said({ ...call, function: { name: 'gone', arguments: 'not JSON' } }),
  ])('are taken as they were made (%#)', (fields) => {
    expect(refusalOf(fields)).toBe('accepted');
  });
});

describe('a result of a call', () => {
  it.each([
    [answered({}), 'messages[1].tool_call_id: is required'],
    [answered({ tool_call_id: 5 }), 'messages[1].tool_call_id: must be a string, not 5'],
    [answered({ tool_call_id: null }), 'messages[1].tool_call_id: must be a string, not null'],
    [
      answered({ tool_call_id: 'a', content: null }),
      'messages[1].content: must be a string or an array of content parts',
    ],
    [
      answered({ tool_call_id: 'a', content: { t: 1 } }),
      'messages[1].content: must be a string or an array of content parts',
    ],
  ])('is refused with its place: %j', (fields, expected) => {
    expect(refusalOf(fields)).toBe(expected);
  });

  it.each(['rain', '', [{ type: 'text', text: 'rain' }]])('may be %j', (content) => {
    expect(refusalOf(answered({ tool_call_id: 'a', content }))).toBe('accepted');
  });
});
