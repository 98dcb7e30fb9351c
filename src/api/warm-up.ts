import { chatRequestSchema, maxTools } from '../contract/chat.js';
import { rerankRequestSchema } from '../contract/rerank.js';
import { parseJson } from './json-body.js';
import { validate } from './validate.js';

/** Enough for the code that parses to be compiled, and less than a tenth of a second. */
const rounds = 12;

const functionTool = (index: number) => ({
  type: 'function',
  function: {
    name: `tool_${index}`,
    description: 'Says what time it is somewhere.',
    parameters: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] },
  },
});

/** A request in which every part of the schema has something to do. */
const chat = {
  model: 'model',
  messages: [
    { role: 'system', content: 'Answer in one sentence.' },
    { role: 'user', content: [{ type: 'text', text: 'What time is it?' }] },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'call', type: 'function', function: { name: 'tool_0', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'call', content: 'Noon.' },
  ],
  temperature: 0.7,
  top_k: 50,
  stop: ['\n'],
  logit_bias: { 1: 1 },
  response_format: { type: 'json_schema', json_schema: { name: 'time', schema: { type: 'object' } } },
  tools: Array.from({ length: maxTools }, (_, index) => functionTool(index)),
  tool_choice: 'auto',
};

const rerank = { model: 'model', query: 'time', documents: Array(100).fill('Noon.') };

/**
 * Parses requests before there are any: schemas are compiled when they are first used, and the first client, or each
 * first client after a deployment, would wait for that.
 */
export function warmUp(): void {
  const bodies = { chat: Buffer.from(JSON.stringify(chat)), rerank: Buffer.from(JSON.stringify(rerank)) };
  for (let round = 0; round < rounds; round++) {
    validate(chatRequestSchema, parseJson(bodies.chat));
    validate(rerankRequestSchema, parseJson(bodies.rerank));
  }
}
