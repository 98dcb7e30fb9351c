import type { ChatChunk, ChatRequest, ChatResponse, Usage } from '../../contract/chat.js';
import { ServiceError } from '../../contract/errors.js';
import type { Model, ModelList } from '../../contract/models.js';
import type { NoticeList } from '../../contract/notices.js';
import type { RerankRequest, RerankResponse } from '../../contract/rerank.js';
import { atomFeed } from '../../platform/notices/atom-feed.js';
import { event } from '../sse.js';
import type { Example } from './document.js';

type Examples = Readonly<Record<string, Example>>;

const id = 'chatcmpl-5f2b7c9d1e3a4f60b8c1d2e3f4a5b6c7';
const created = 1_732_147_200;
const chatModel = 'SmolLM2-135M-Instruct';
const rerankModel = 'all-MiniLM-L6-v2';

const question: ChatRequest = {
  model: chatModel,
  messages: [
    { role: 'system', content: 'Answer in one sentence.' },
    { role: 'user', content: 'What is a headrace?' },
  ],
  max_tokens: 64,
};

const sampled: ChatRequest = {
  ...question,
  stream: true,
  temperature: 0.8,
  top_p: 0.9,
  seed: 7,
  stop: ['\n\n'],
  stream_options: { include_usage: true },
};

const withTools: ChatRequest = {
  model: chatModel,
  messages: [{ role: 'user', content: 'What time is it in Oslo?' }],
  tools: [
    {
      type: 'function',
      function: {
        name: 'get_time',
        description: 'The time of day in a place.',
        parameters: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] },
      },
    },
  ],
  tool_choice: 'auto',
};

const structured: ChatRequest = {
  model: chatModel,
  messages: [{ role: 'user', content: 'Name a river and its length.' }],
  response_format: {
    type: 'json_schema',
    json_schema: {
      name: 'river',
      schema: {
        type: 'object',
        properties: { name: { type: 'string' }, kilometres: { type: 'integer' } },
        required: ['name', 'kilometres'],
        additionalProperties: false,
      },
    },
  },
};

const usage: Usage = {
  prompt_tokens: 27,
  completion_tokens: 14,
  total_tokens: 41,
  prompt_tokens_details: { cached_tokens: 0 },
};

const reply: ChatResponse = {
  id,
  object: 'chat.completion',
  created,
  model: chatModel,
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'A headrace is the channel that leads water to a mill wheel.' },
      finish_reason: 'stop',
    },
  ],
  usage,
};

const toolCall: ChatResponse = {
  ...reply,
  choices: [
    {
      index: 0,
      message: {
        role: 'assistant',
        content: null,
        tool_calls: [
          {
            id: 'call_4f1c2a',
            type: 'function',
            function: { name: 'get_time', arguments: '{"place": "Oslo"}' },
          },
        ],
      },
      finish_reason: 'tool_calls',
    },
  ],
};

const chunk = { id, object: 'chat.completion.chunk', created, model: chatModel } as const;

const chunks: ChatChunk[] = [
  {
    ...chunk,
    choices: [{ index: 0, delta: { role: 'assistant', content: 'A headrace' }, finish_reason: null }],
  },
  { ...chunk, choices: [{ index: 0, delta: { content: ' is the channel' }, finish_reason: null }] },
  { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: 'length' }], usage },
  { ...chunk, choices: [], usage },
];

const ranking: RerankRequest = {
  model: rerankModel,
  query: 'Who painted the Mona Lisa?',
  documents: [
    'The Louvre is in Paris.',
    'Leonardo da Vinci painted the Mona Lisa.',
    'Bread is baked from flour.',
  ],
  top_n: 2,
  return_documents: true,
};

const ranked: RerankResponse = {
  id: 'rerank-8d0e6a7b5c4f4e21a9b8c7d6e5f40312',
  results: [
    { index: 1, relevance_score: 0.93, document: 'Leonardo da Vinci painted the Mona Lisa.' },
    { index: 0, relevance_score: 0.64, document: 'The Louvre is in Paris.' },
  ],
  tokens: { total_tokens: 38 },
  meta: { tokens: { input_tokens: 38, output_tokens: 0 } },
};

const model: Model = {
  id: chatModel,
  object: 'model',
  created,
  owned_by: 'headrace',
  type: 'text',
  sub_type: 'chat',
  context_length: 2048,
  capabilities: [],
};

const list: ModelList = {
  object: 'list',
  data: [model, { ...model, id: rerankModel, sub_type: 'reranker', context_length: 512 }],
};

const notices: NoticeList = {
  object: 'list',
  data: [
    {
      id: '019e6a1c-5a00-7c3e-9d51-2f0b6a7c8d9e',
      object: 'notice',
      created,
      kind: 'model.deprecated',
      model: chatModel,
      audience: 'everyone',
      title: `${chatModel} is deprecated`,
      text: `The model ${chatModel} takes requests until 2027-06-30T00:00:00Z and none after that.`,
    },
  ],
  has_more: false,
};

/** What requests and responses look like, for the description of the service. */
export const examples = {
  chatRequests: {
    plain: { summary: 'In one piece', value: question },
    stream: { summary: 'As a stream', value: sampled },
    tools: { summary: 'With a function that the model may call', value: withTools },
    structured: { summary: 'Answered with JSON that fits a schema', value: structured },
  },
  chatResponse: {
    plain: { summary: 'Text', value: reply },
    toolCall: { summary: 'A function to call', value: toolCall },
  },
  chatStream: {
    stream: {
      summary: 'A whole reply',
      value: [...chunks.map((value) => JSON.stringify(value)), '[DONE]'].map(event).join(''),
    },
    failed: {
      summary: 'A reply that fails after its first event',
      value: [chunks[0], new ServiceError('overloaded').toBody()]
        .map((value) => event(JSON.stringify(value)))
        .join(''),
    },
  },
  rerankRequest: { plain: { value: ranking } },
  rerankResponse: { plain: { value: ranked } },
  modelList: { plain: { value: list } },
  model: { plain: { value: model } },
  noticeList: { plain: { value: notices } },
  noticeFeed: {
    plain: {
      value: atomFeed(notices.data, {
        id: 'urn:uuid:3f1f5d5e-6d3c-4b8e-9a57-0c7a1d2e3f40',
        self: 'https://headrace.example/v1/notices.atom',
        updated: new Date(created * 1000),
      }),
    },
  },
  metrics: {
    plain: {
      value:
        '# HELP headrace_tokens_total Tokens spent, by kind: prompt or completion.\n' +
        '# TYPE headrace_tokens_total counter\n' +
        `headrace_tokens_total{model="${chatModel}",kind="prompt"} 27\n` +
        `headrace_tokens_total{model="${chatModel}",kind="completion"} 14\n`,
    },
  },
} satisfies Record<string, Examples>;
