import { once } from 'node:events';
import { parseJson } from '../../src/api/json-body.js';
import { validate } from '../../src/api/validate.js';
import { warmUp } from '../../src/api/warm-up.js';
import { chatRequestSchema, maxTools } from '../../src/contract/chat.js';

/** Tells the parent how long a request with as many tools as there may be takes to parse. */
const body = Buffer.from(
  JSON.stringify({
    model: 'bench',
    messages: [{ role: 'user', content: 'Which of these do you know?' }],
    tools: Array.from({ length: maxTools }, (_, i) => ({
      type: 'function',
      function: {
        name: `tool_${i}`,
        description: `Does the thing that is number ${i}, and says what came of it.`,
        parameters: {
          type: 'object',
          properties: {
            place: { type: 'string', description: 'Where to do it.' },
            times: { type: 'integer', minimum: 1, maximum: 10 },
            how: { type: 'array', items: { enum: ['quickly', 'slowly', 'not at all'] } },
          },
          required: ['place'],
        },
      },
    })),
  }),
);

const before = performance.now();
warmUp();
const warmUpMs = round(performance.now() - before);
process.send!({ type: 'ready' });
await once(process, 'message');
const taken: number[] = [];
for (let i = 0; i < 500; i++) {
  const begun = performance.now();
  validate(chatRequestSchema, parseJson(body));
  taken.push(performance.now() - begun);
}
const firstMs = taken[0]!;
taken.sort((a, b) => a - b);
process.send!({ warmUpMs, firstMs: round(firstMs), medianMs: round(taken[taken.length >> 1]!) });

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
