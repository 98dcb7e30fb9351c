import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ChatRequest } from '../contract/chat.js';
import { ServiceError } from '../contract/errors.js';
import type { CatalogueModel } from '../models/catalogue.js';
import type { Backplane } from '../platform/backplane/backplane.js';
import type { LiveCatalogue } from '../platform/model-registry/live-catalogue.js';
import { isServed, refusalOf } from '../platform/model-registry/model-state.js';
import { setDeprecationHeaders } from './deprecation-headers.js';
import { QueueDepth } from './queue-depth.js';

type ModelOf<Task> = Extract<CatalogueModel, { task: Task }>;

/** Decides which requests may join a queue. */
export class Admission {
  readonly #models: Pick<LiveCatalogue, 'find'>;
  readonly #depths: ReadonlyMap<string, QueueDepth>;
  readonly #maxQueueDepth: number;

  constructor(options: {
    models: Pick<LiveCatalogue, 'find' | 'models'>;
    backplane: Pick<Backplane, 'queue'>;
    maxQueueDepth: number;
  }) {
    const { models, backplane, maxQueueDepth } = options;
    this.#models = models;
    this.#depths = new Map(
      models.models.map(({ entry: { id } }) => [id, new QueueDepth({ backplane, model: id })]),
    );
    this.#maxQueueDepth = maxQueueDepth;
  }

  /**
   * The model a request names. From here on the response says so if the model is deprecated.
   * @throws ServiceError modelNotFound when there is none, or it is offline; invalidParameter when it does something
   * else; modelNotOpen or verificationRequired when it is not for this caller.
   */
  model<T extends CatalogueModel['task']>(
    id: string,
    task: T,
    { request, response }: { request: Pick<FastifyRequest, 'caller'>; response: FastifyReply },
  ): ModelOf<T> {
    const now = new Date();
    const model = this.#models.find(id);
    if (model === undefined || !isServed(model.state, now)) throw new ServiceError('modelNotFound');
    const { entry, state } = model;
    setDeprecationHeaders(response, state);
    if (!isFor(entry, task)) {
      throw new ServiceError(
        'invalidParameter',
        `model: must be a ${task} model, and this is a ${entry.task} model`,
      );
    }
    const refusal = refusalOf(state, request.caller, now);
    if (refusal !== undefined) throw new ServiceError(refusal);
    return entry;
  }

  /**
   * Lets one request into the queue of a model.
   * @throws ServiceError overloaded when it is full or cannot be reached.
   */
  async enter(modelId: string): Promise<void> {
    const depth = this.#depths.get(modelId);
    if (depth === undefined) throw new Error(`No queue is known for "${modelId}". This is a bug.`);
    const full = await depth.reaches(this.#maxQueueDepth).catch((cause) => {
      throw new ServiceError('overloaded', undefined, { cause });
    });
    if (full) throw new ServiceError('overloaded');
    depth.add();
  }
}

/** @throws ServiceError invalidParameter naming the first image that a model without vision is sent. */
export function refuseImages({ messages }: ChatRequest, model: ModelOf<'chat'>): void {
  if (model.capabilities.includes('vision')) return;
  for (const [i, { content }] of messages.entries()) {
    if (!Array.isArray(content)) continue;
    const j = content.findIndex(({ type }) => type === 'image_url');
    if (j === -1) continue;
    throw new ServiceError(
      'invalidParameter',
      `messages[${i}].content[${j}]: this model does not take images`,
    );
  }
}

function isFor<T extends CatalogueModel['task']>(model: CatalogueModel, task: T): model is ModelOf<T> {
  return model.task === task;
}
