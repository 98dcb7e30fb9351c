import type { WebhookEvent } from '../../contract/notices.js';
import { refer } from './components.js';
import type { OpenApiDocument, Parameter } from './document.js';
import { examples } from './examples.js';

const [notice] = examples.noticeList.plain.value.data;

const example: WebhookEvent = {
  type: 'notice.created',
  timestamp: '2024-11-20T14:40:00.000Z',
  data: { ...notice!, account_id: null },
};

function header(name: string, description: string): Parameter {
  return { name, in: 'header', required: true, description, schema: { type: 'string' } };
}

/** What the service sends to addresses that its operators have named. */
export function webhooks(): OpenApiDocument['webhooks'] {
  return {
    notice: {
      post: {
        operationId: 'receiveNotice',
        summary: 'A notice, sent to an address that an operator has named',
        description:
          'Signed as the Standard Webhooks specification has it. Any status from 200 to 299 within 10 seconds ends ' +
          'the delivery; after anything else it is tried again, less and less often, for nearly three hours.',
        tags: ['Notices'],
        security: [],
        parameters: [
          header('webhook-id', 'The same at every attempt.'),
          header('webhook-timestamp', 'Unix seconds of this attempt.'),
          header('webhook-signature', '`v1,` and the HMAC-SHA-256 of `id.timestamp.body`, in base64.'),
        ],
        requestBody: {
          required: true,
          content: {
            'application/json': { schema: refer('WebhookEvent'), examples: { notice: { value: example } } },
          },
        },
        responses: {
          '2XX': { description: 'It has arrived.' },
          '4XX': { description: 'It is tried again later.' },
        },
      },
    },
  };
}
