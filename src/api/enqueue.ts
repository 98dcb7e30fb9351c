import type { ChatRequest } from '../contract/chat.js';
import { ServiceError } from '../contract/errors.js';
import type { ChatJob, Job, RerankJob } from '../contract/job.js';
import type { RerankRequest } from '../contract/rerank.js';
import type { CatalogueModel } from '../models/catalogue.js';
import type { Backplane } from '../platform/backplane/backplane.js';
import type { Replies } from './replies.js';
import type { Reply } from './reply.js';
import { estimateChat, estimateRerank } from './token-estimate.js';

/** What a job says besides what was asked. */
export type Envelope = Pick<Job, 'id' | 'replyTo' | 'enqueuedAt' | 'deadlineAt' | 'caller'>;

/** A job with the tokens that are to be set aside for it. */
export type EstimatedJob<Asked extends Job = Job> = Asked & { readonly reservedTokens: number };

/** Puts a job into its model's queue. A queue that does not take it fails the reply. */
export function enqueue(
  job: Job,
  { replies, backplane }: { replies: Replies; backplane: Pick<Backplane, 'queue'> },
): Reply {
  // Before the job is in the queue: its first frame may come sooner than the queue's answer.
  const reply = replies.register(job);
  try {
    reply.follow(backplane.queue(job.model).add(job));
  } catch (cause) {
    // No job has left this process: there is nothing to wait for until the deadline.
    reply.fail(new ServiceError('internal', undefined, { cause }));
  }
  return reply;
}

/** Resolves aliases, applies the catalogue's defaults, leaves out what only says the usual, and estimates its cost. */
export function chatJob(
  request: ChatRequest,
  { model, envelope }: { model: Extract<CatalogueModel, { task: 'chat' }>; envelope: Envelope },
): EstimatedJob<ChatJob> {
  const { defaults } = model;
  const { response_format: format, stop } = request;
  const tools = request.tools?.length ? request.tools : undefined;
  const job: ChatJob = {
    ...envelope,
    kind: 'chat',
    model: model.id,
    priority: 'interactive',
    messages: request.messages,
    maxTokens: request.max_tokens ?? request.max_completion_tokens ?? defaults.maxTokens,
    stop: typeof stop === 'string' ? [stop] : (stop ?? []),
    temperature: request.temperature ?? defaults.temperature,
    topP: request.top_p ?? defaults.topP,
    topK: request.top_k ?? defaults.topK,
    minP: request.min_p ?? undefined,
    frequencyPenalty: request.frequency_penalty ?? undefined,
    presencePenalty: request.presence_penalty ?? undefined,
    seed: request.seed ?? undefined,
    n: request.n ?? 1,
    topLogprobs: request.logprobs ? (request.top_logprobs ?? 0) : undefined,
    logitBias: request.logit_bias ?? undefined,
    responseFormat: format == null || format.type === 'text' ? undefined : format,
    tools,
    toolChoice: tools && (request.tool_choice ?? undefined),
    parallelToolCalls: tools && (request.parallel_tool_calls ?? undefined),
  };
  return { ...job, reservedTokens: estimateChat(job, model) };
}

/** Applies the contract's defaults, and estimates what it costs. */
export function rerankJob(
  request: RerankRequest,
  { model, envelope }: { model: Extract<CatalogueModel, { task: 'rerank' }>; envelope: Envelope },
): EstimatedJob<RerankJob> {
  const job: RerankJob = {
    ...envelope,
    kind: 'rerank',
    model: model.id,
    priority: 'interactive',
    query: request.query,
    documents: request.documents,
    maxChunksPerDoc: request.max_chunks_per_doc ?? 1024,
    overlapTokens: request.overlap_tokens ?? 0,
  };
  return { ...job, reservedTokens: estimateRerank(job, model) };
}
