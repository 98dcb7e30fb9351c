import type { UsageReport } from '../../contract/usage.js';
import { maxUsageDays, usageGroupings } from '../../contract/usage.js';
import { usageCsv } from '../usage-csv.js';
import { refer } from './components.js';
import type { Operation } from './document.js';
import { errorResponses, requestIdHeader } from './responses.js';

const sums = {
  requests: 12,
  failed_requests: 1,
  prompt_tokens: 480,
  completion_tokens: 96,
  cached_tokens: 0,
  total_tokens: 576,
};
const example: UsageReport = {
  object: 'list',
  start: '2026-10-01T00:00:00.000Z',
  end: '2026-11-01T00:00:00.000Z',
  data: [{ day: '2026-10-14', model: 'SmolLM2-135M-Instruct', ...sums }],
};

export function usageOperation(): Operation {
  const moment = {
    anyOf: [
      { type: 'string', format: 'date' },
      { type: 'string', format: 'date-time' },
    ],
  };
  return {
    operationId: 'getUsage',
    summary: 'What the account of the key has used',
    description:
      'Sums over hours: a range that begins or ends within an hour has all of it. With `Accept: text/csv` the ' +
      'report is a table whose first line names its columns.',
    tags: ['Usage'],
    parameters: [
      { name: 'start', in: 'query', description: '30 days before the end when absent.', schema: moment },
      {
        name: 'end',
        in: 'query',
        description: `Not included; now when absent. At most ${maxUsageDays} days after the start.`,
        schema: moment,
      },
      {
        name: 'group_by',
        in: 'query',
        description: `Any of ${usageGroupings.join(', ')}, separated by commas; one sum when absent.`,
        schema: { type: 'string' },
      },
    ],
    responses: {
      200: {
        description: 'The sums, by day, model and key.',
        headers: requestIdHeader,
        content: {
          'application/json': { schema: refer('UsageReport'), examples: { byDay: { value: example } } },
          'text/csv': {
            schema: { type: 'string' },
            examples: { byDay: { value: usageCsv(example.data, new Set(['day', 'model'])) } },
          },
        },
      },
      ...errorResponses([
        'invalidParameter',
        'unauthorized',
        'accountDisabled',
        'rpmLimit',
        'internal',
        'overloaded',
      ]),
    },
  };
}
