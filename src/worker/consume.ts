import { z } from 'zod';
import { errorTable, ServiceError } from '../contract/errors.js';
import { type Job, jobSchema } from '../contract/job.js';
import type { Delivery, JobHandler } from '../platform/backplane/backplane.js';
import type { Logger } from '../platform/logger.js';
import type { Cancellations } from './cancel.js';
import type { Clock } from './clock.js';
import { type Ending, HeldRequest, RequestEnded } from './held-request.js';
import type { HeldRequests } from './held-requests.js';
import type { OrphanLedger } from './orphan-ledger.js';
import type { Publisher, Reply } from './publish.js';

/** Answers a job: sends the frames of the answer, or throws as the signal of the request says. */
export type JobRunner = (job: Job, request: HeldRequest) => Promise<void>;

export interface JobHandlerOptions {
  readonly workerId: string;
  readonly held: HeldRequests;
  readonly publisher: Publisher;
  readonly cancellations: Pick<Cancellations, 'take'>;
  /** Whether an API process is known to be dead: nobody waits for its requests. */
  readonly isGone: (apiId: string) => boolean;
  /** Learns what each request cost; absent where there is no database to write it to. */
  readonly orphans?: Pick<OrphanLedger, 'add'>;
  readonly run: JobRunner;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Enough of a payload that does not parse to tell its sender so. */
const senderSchema = z.object({ id: z.string(), replyTo: z.string() });

const nothingSpent = { promptTokens: 0, completionTokens: 0, cachedTokens: 0 };

/**
 * Takes one job from the queue to its last frame, and settles when that frame was handed over: a worker that dies
 * before leaves the job to another. Never rejects.
 */
export function createJobHandler(options: JobHandlerOptions): JobHandler {
  const { held, publisher, isGone, orphans, clock, logger } = options;

  return async (delivery) => {
    const parsed = jobSchema.safeParse(delivery.payload);
    if (!parsed.success) return refuse(delivery, parsed.error);
    const job = parsed.data;
    if (isGone(job.replyTo)) {
      logger.info({ request: job.id, api: job.replyTo }, 'dropped a request whose API process is gone');
      orphans?.add({ job, spent: nothingSpent });
      return;
    }
    const silence = () => request.end({ type: 'silent' });
    const reply = publisher.reply({
      id: job.id,
      attempt: delivery.attempt,
      replyTo: job.replyTo,
      onLost: silence,
    });
    const request = new HeldRequest({ job, reply, clock });
    delivery.signal.addEventListener('abort', silence);
    held.add(request);
    try {
      await answer(options, request);
    } catch (error) {
      end(options, request, error);
    } finally {
      request.release();
      held.remove(request);
      // Another worker runs what this one has lost its hold on, and knows better.
      if (!delivery.signal.aborted) orphans?.add(request);
      delivery.signal.removeEventListener('abort', silence);
    }
    await reply.delivered();
  };

  async function refuse(delivery: Delivery, error: z.ZodError): Promise<void> {
    logger.error({ err: error, job: delivery.jobId }, 'a job cannot be read');
    const sender = senderSchema.safeParse(delivery.payload);
    if (!sender.success) return;
    const reply = publisher.reply({ ...sender.data, attempt: delivery.attempt, onLost: () => {} });
    sendStarted(options, reply, 0);
    sendFailed(reply, { type: 'failed', error: 'internal' }, nothingSpent);
    await reply.delivered();
  }
}

async function answer(options: JobHandlerOptions, request: HeldRequest): Promise<void> {
  const { cancellations, run } = options;
  sendStarted(options, request.reply, request.queueMs);
  if (cancellations.take(request.job.id)) request.end({ type: 'cancelled' });
  request.signal.throwIfAborted();
  await run(request.job, request);
}

function sendStarted({ workerId }: JobHandlerOptions, reply: Reply, queueMs: number): void {
  reply.send({ type: 'started', workerId, queueMs });
}

/** Tells the API process, where it is to be told, why there is no answer. */
function end({ logger }: JobHandlerOptions, request: HeldRequest, error: unknown): void {
  const { reply, spent } = request;
  const ending = endingOf(request, error);
  if (error !== request.signal.reason && !(error instanceof ServiceError)) {
    logger.error({ err: error, request: request.job.id }, 'a request failed');
  }
  switch (ending.type) {
    case 'silent':
      break;
    case 'cancelled':
      reply.send({ type: 'cancelled', spent, timings: request.timings() });
      break;
    case 'failed':
      sendFailed(reply, ending, spent);
      break;
    default:
      ending satisfies never;
  }
}

/** A request that was told to end ends so, whatever else came of that. */
function endingOf(request: HeldRequest, error: unknown): Ending {
  const { reason } = request.signal;
  if (reason instanceof RequestEnded) return reason.ending;
  if (error instanceof ServiceError) {
    const { kind, message, retryAfterSeconds } = error;
    return { type: 'failed', error: kind, message, retryAfterSeconds };
  }
  return { type: 'failed', error: 'internal' };
}

function sendFailed(
  reply: Reply,
  { error, message = errorTable[error].message, retryAfterSeconds }: Ending & { type: 'failed' },
  spent: HeldRequest['spent'],
): void {
  reply.send({ type: 'failed', error, message, retryAfterSeconds, spent });
}
