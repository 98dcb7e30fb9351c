import { z } from 'zod';

/** A field inside a message that clients leave out or send as null, which means the same. */
function absentOrNull<T extends z.ZodType>(schema: T) {
  return schema
    .nullish()
    .transform((value) => value ?? undefined)
    .optional();
}

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

const name = absentOrNull(z.string());

/** One message of the conversation so far. `developer` is another name of `system`. */
export const messageSchema = z
  .discriminatedUnion('role', [
    z.object({ role: z.enum(['system', 'developer']), content: contentSchema, name }),
    z.object({ role: z.literal('user'), content: contentSchema, name }),
    z
      .object({
        role: z.literal('assistant'),
        content: contentSchema.nullish(),
        tool_calls: absentOrNull(z.array(toolCallSchema).min(1)),
        name,
      })
      .refine((message) => message.content != null || message.tool_calls !== undefined, {
        path: ['content'],
        error: 'may be null only in an assistant message with tool_calls',
      }),
    z.object({ role: z.literal('tool'), content: contentSchema, tool_call_id: z.string(), name }),
  ])
  .meta({
    id: 'Message',
    description: 'One message of the conversation; `developer` is another name of `system`.',
  });
export type Message = z.infer<typeof messageSchema>;

export const toolSchema = z
  .object({
    type: z.literal('function'),
    function: z.object({
      name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/, 'must match ^[a-zA-Z0-9_-]{1,64}$'),
      description: absentOrNull(z.string()),
      parameters: absentOrNull(z.record(z.string(), z.unknown()).meta({ description: 'A JSON schema.' })),
      strict: z.boolean().nullish(),
    }),
  })
  .meta({ id: 'Tool' });
export type Tool = z.infer<typeof toolSchema>;

export const toolChoiceSchema = z.union(
  [
    z.enum(['none', 'auto', 'required']),
    z.object({ type: z.literal('function'), function: z.object({ name: z.string() }) }),
  ],
  { error: 'must be "none", "auto", "required" or the function to call' },
);
export type ToolChoice = z.infer<typeof toolChoiceSchema>;

export const responseFormatSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text') }),
  z.object({ type: z.literal('json_object') }),
  z.object({
    type: z.literal('json_schema'),
    json_schema: z.object({
      name: z.string(),
      description: absentOrNull(z.string()),
      schema: z.record(z.string(), z.unknown()),
      strict: z.boolean().nullish(),
    }),
  }),
]);
export type ResponseFormat = z.infer<typeof responseFormatSchema>;

const topKRule = 'must be -1 or an integer from 1 to 1000';

/** The body of `POST /v1/chat/completions`. Unknown fields are ignored; null means absent, as clients send it. */
export const chatRequestSchema = z
  .object({
    model: z.string().min(1).meta({ description: 'The id of a chat model that is online.' }),
    messages: z.array(messageSchema).min(1).meta({ description: 'The conversation so far.' }),
    stream: z
      .boolean()
      .nullish()
      .meta({ description: 'Send the reply as server-sent events as it is written.', default: false }),
    stream_options: z
      .object({
        include_usage: z.boolean().nullish().meta({
          description: 'Before [DONE], send one chunk with the usage and no choices.',
        }),
      })
      .nullish()
      .meta({ description: 'Only of use with stream.' }),
    max_tokens: z
      .int()
      .min(1)
      .nullish()
      .meta({
        description:
          "The longest reply, in tokens; the model's own default when absent. What does not fit into the context " +
          'beside the prompt is cut off.',
      }),
    max_completion_tokens: z.int().min(1).nullish().meta({ description: 'Another name of max_tokens.' }),
    stop: z
      .union([z.string().min(1), z.array(z.string().min(1)).max(maxStopSequences)], {
        error: `must be a string or an array of at most ${maxStopSequences} strings`,
      })
      .nullish()
      .meta({ description: 'Generation stops at the first of these; the reply does not contain it.' }),
    temperature: z.number().min(0).max(2).nullish().meta({
      description: "Randomness: 0 always takes the likeliest token. The model's own default, else 0.7.",
    }),
    top_p: z.number().gt(0).max(1).nullish().meta({
      description: 'Draw from the likeliest tokens that together have this probability.',
      default: 0.7,
    }),
    top_k: z
      .union([z.literal(-1), z.int(topKRule).min(1, topKRule).max(1000, topKRule)], { error: topKRule })
      .nullish()
      .meta({ description: 'Draw from this many of the likeliest tokens; -1 for all.', default: 50 }),
    min_p: z.number().min(0).max(1).nullish().meta({
      description: 'Drop tokens less likely than this share of the likeliest.',
      default: 0,
    }),
    frequency_penalty: z.number().min(-2).max(2).nullish().meta({
      description: 'Makes a token less likely each time that it has occurred.',
      default: 0,
    }),
    presence_penalty: z.number().min(-2).max(2).nullish().meta({
      description: 'Makes a token less likely once it has occurred.',
      default: 0,
    }),
    seed: z.int().nullish().meta({ description: 'Same seed, model and request: same text.' }),
    n: z.int().min(1).max(16).nullish().meta({ description: 'How many replies to write.', default: 1 }),
    logprobs: z
      .boolean()
      .nullish()
      .meta({ description: 'Return the log-probability of each token.', default: false }),
    top_logprobs: z.int().min(0).max(20).nullish().meta({
      description: 'With logprobs: how many alternatives to return with each token.',
    }),
    logit_bias: z
      .record(z.string().regex(/^\d+$/, 'must be a token id'), z.number().min(-100).max(100))
      .nullish()
      .meta({ description: 'Token id to a number that is added to its logit.' }),
    response_format: responseFormatSchema.nullish().meta({
      description: 'What the text must be: anything, JSON, or JSON that fits a schema.',
    }),
    tools: z.array(toolSchema).max(maxTools).nullish().meta({ description: 'Functions the model may call.' }),
    tool_choice: toolChoiceSchema
      .nullish()
      .meta({ description: 'Whether the model may or must call a function, or which.' }),
    parallel_tool_calls: z
      .boolean()
      .nullish()
      .meta({ description: 'Whether one reply may hold several calls.', default: true }),
    user: z.string().nullish().meta({ description: 'Your own name of the end user, kept with the usage.' }),
    metadata: z.record(z.string(), z.unknown()).nullish().meta({ description: 'Accepted and not used.' }),
  })
  .superRefine(checkFieldsTogether)
  .meta({ id: 'ChatCompletionRequest', description: 'Fields that are not listed are ignored.' });
export type ChatRequest = z.infer<typeof chatRequestSchema>;

/** The fields that speak of each other, as far as the rules below read them. */
interface FieldsTogether {
  readonly logprobs?: boolean | null | undefined;
  readonly top_logprobs?: number | null | undefined;
  readonly tools?: readonly Tool[] | null | undefined;
  readonly tool_choice?: ToolChoice | null | undefined;
}

function checkFieldsTogether(request: FieldsTogether, context: z.RefinementCtx): void {
  const refuse = (path: (string | number)[], message: string) =>
    context.addIssue({ code: 'custom', path, message });
  const { tools, tool_choice: choice } = request;
  if (request.top_logprobs && !request.logprobs) refuse(['top_logprobs'], 'needs logprobs to be true');

  const places = new Map<string, number>();
  for (const [index, { function: called }] of (tools ?? []).entries()) {
    const earlier = places.get(called.name);
    if (earlier === undefined) places.set(called.name, index);
    else refuse(['tools', index, 'function', 'name'], `is the name of tools[${earlier}] already`);
  }
  if (choice === 'required' && places.size === 0) refuse(['tool_choice'], 'needs tools');
  if (choice != null && typeof choice === 'object' && !places.has(choice.function.name)) {
    refuse(['tool_choice', 'function', 'name'], 'is not the name of a tool');
  }
}

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

export const toolCallDeltaSchema = z.object({
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
