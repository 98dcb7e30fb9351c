import { z } from 'zod';

/** Limits of the operation that do not depend on the model. */
export const maxTools = 128;
export const maxStopSequences = 4;

const textPartSchema = z.object({ type: z.literal('text'), text: z.string() });
const imagePartSchema = z.object({ type: z.literal('image_url'), image_url: z.object({ url: z.string() }) });
export const contentPartSchema = z.discriminatedUnion('type', [textPartSchema, imagePartSchema]);
export type ContentPart = z.infer<typeof contentPartSchema>;

const contentSchema = z.union([z.string(), z.array(contentPartSchema).min(1)], {
  error: 'must be a string or an array of content parts',
});

export const toolCallSchema = z
  .object({
    id: z.string(),
    type: z.literal('function'),
    function: z.object({
      name: z.string(),
      arguments: z.string().meta({ description: 'The arguments as JSON text.' }),
    }),
  })
  .meta({ id: 'ToolCall' });
export type ToolCall = z.infer<typeof toolCallSchema>;

const name = z.string().optional();

/** One message of the conversation so far. `developer` is another name of `system`. */
export const messageSchema = z
  .discriminatedUnion('role', [
    z.object({ role: z.enum(['system', 'developer']), content: contentSchema, name }),
    z.object({ role: z.literal('user'), content: contentSchema, name }),
    z
      .object({
        role: z.literal('assistant'),
        content: contentSchema.nullish(),
        tool_calls: z.array(toolCallSchema).min(1).optional(),
        name,
      })
      .refine((message) => message.content != null || message.tool_calls !== undefined, {
        path: ['content'],
        error: 'may be null only in an assistant message with tool_calls',
      }),
    z.object({ role: z.literal('tool'), content: contentSchema, tool_call_id: z.string(), name }),
  ])
  .meta({ id: 'Message' });
export type Message = z.infer<typeof messageSchema>;

export const toolSchema = z
  .object({
    type: z.literal('function'),
    function: z.object({
      name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/, 'must match ^[a-zA-Z0-9_-]{1,64}$'),
      description: z.string().optional(),
      parameters: z.record(z.string(), z.unknown()).optional().meta({ description: 'A JSON schema.' }),
      strict: z.boolean().nullish(),
    }),
  })
  .meta({ id: 'Tool' });
export type Tool = z.infer<typeof toolSchema>;

export const toolChoiceSchema = z.union([
  z.enum(['none', 'auto', 'required']),
  z.object({ type: z.literal('function'), function: z.object({ name: z.string() }) }),
]);
export type ToolChoice = z.infer<typeof toolChoiceSchema>;

export const responseFormatSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text') }),
  z.object({ type: z.literal('json_object') }),
  z.object({
    type: z.literal('json_schema'),
    json_schema: z.object({
      name: z.string(),
      description: z.string().optional(),
      schema: z.record(z.string(), z.unknown()),
      strict: z.boolean().nullish(),
    }),
  }),
]);
export type ResponseFormat = z.infer<typeof responseFormatSchema>;

/** The body of `POST /v1/chat/completions`. Unknown fields are ignored; null means absent, as clients send it. */
export const chatRequestSchema = z
  .object({
    model: z.string().min(1),
    messages: z.array(messageSchema).min(1),
    stream: z.boolean().nullish(),
    stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
    max_tokens: z.int().min(1).nullish(),
    max_completion_tokens: z.int().min(1).nullish().meta({ description: 'Another name of max_tokens.' }),
    stop: z.union([z.string().min(1), z.array(z.string().min(1)).max(maxStopSequences)]).nullish(),
    temperature: z.number().min(0).max(2).nullish(),
    top_p: z.number().gt(0).max(1).nullish(),
    top_k: z
      .union([z.literal(-1), z.int().min(1).max(1000)], { error: 'must be -1 or an integer from 1 to 1000' })
      .nullish(),
    min_p: z.number().min(0).max(1).nullish(),
    frequency_penalty: z.number().min(-2).max(2).nullish(),
    presence_penalty: z.number().min(-2).max(2).nullish(),
    seed: z.int().nullish(),
    n: z.int().min(1).max(16).nullish(),
    logprobs: z.boolean().nullish(),
    top_logprobs: z.int().min(0).max(20).nullish(),
    logit_bias: z
      .record(z.string().regex(/^\d+$/, 'must be a token id'), z.number().min(-100).max(100))
      .nullish(),
    response_format: responseFormatSchema.nullish(),
    tools: z.array(toolSchema).max(maxTools).nullish(),
    tool_choice: toolChoiceSchema.nullish(),
    parallel_tool_calls: z.boolean().nullish(),
    user: z.string().nullish(),
    metadata: z.record(z.string(), z.unknown()).nullish(),
  })
  .meta({ id: 'ChatCompletionRequest' });
export type ChatRequest = z.infer<typeof chatRequestSchema>;

/** Why a choice ended: end of turn or stop sequence; the token limit; a tool call. */
export const finishReasonSchema = z.enum(['stop', 'length', 'tool_calls']);
export type FinishReason = z.infer<typeof finishReasonSchema>;

export const usageSchema = z
  .object({
    prompt_tokens: z.int(),
    completion_tokens: z.int(),
    total_tokens: z.int(),
    prompt_tokens_details: z.object({ cached_tokens: z.int() }),
  })
  .meta({ id: 'Usage' });
export type Usage = z.infer<typeof usageSchema>;

const tokenLogprobSchema = z.object({
  token: z.string(),
  logprob: z.number(),
  bytes: z.array(z.int()).nullable(),
});

/** One generated token with its log-probability and the likeliest alternatives. */
export const logprobSchema = tokenLogprobSchema.extend({ top_logprobs: z.array(tokenLogprobSchema) });
export type Logprob = z.infer<typeof logprobSchema>;

const logprobsSchema = z.object({ content: z.array(logprobSchema) });

export const chatResponseSchema = z
  .object({
    id: z.string(),
    object: z.literal('chat.completion'),
    created: z.int().meta({ description: 'Unix time in seconds.' }),
    model: z.string(),
    choices: z.array(
      z.object({
        index: z.int(),
        message: z.object({
          role: z.literal('assistant'),
          content: z.string().nullable(),
          tool_calls: z.array(toolCallSchema).optional(),
        }),
        logprobs: logprobsSchema.nullish(),
        finish_reason: finishReasonSchema,
      }),
    ),
    usage: usageSchema,
  })
  .meta({ id: 'ChatCompletion' });
export type ChatResponse = z.infer<typeof chatResponseSchema>;

const toolCallDeltaSchema = z.object({
  index: z.int(),
  id: z.string().optional(),
  type: z.literal('function').optional(),
  function: z.object({ name: z.string().optional(), arguments: z.string().optional() }),
});
export type ToolCallDelta = z.infer<typeof toolCallDeltaSchema>;

/** One server-sent event of a streamed reply. */
export const chatChunkSchema = z
  .object({
    id: z.string(),
    object: z.literal('chat.completion.chunk'),
    created: z.int(),
    model: z.string(),
    choices: z.array(
      z.object({
        index: z.int(),
        delta: z.object({
          role: z.literal('assistant').optional(),
          content: z.string().nullish(),
          tool_calls: z.array(toolCallDeltaSchema).optional(),
        }),
        logprobs: logprobsSchema.nullish(),
        finish_reason: finishReasonSchema.nullable(),
      }),
    ),
    usage: usageSchema.nullish(),
  })
  .meta({ id: 'ChatCompletionChunk' });
export type ChatChunk = z.infer<typeof chatChunkSchema>;
