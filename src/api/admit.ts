import type { ChatRequest } from '../contract/chat.js';
import { ServiceError } from '../contract/errors.js';
import type { Catalogue, CatalogueModel } from '../models/catalogue.js';
import type { Backplane } from '../platform/backplane/backplane.js';
import { QueueDepth } from './queue-depth.js';

type ModelOf<Task> = Extract<CatalogueModel, { task: Task }>;

/** Decides which requests may join a queue. */
export class Admission {
  readonly #models: ReadonlyMap<string, CatalogueModel>;
  readonly #depths: ReadonlyMap<string, QueueDepth>;
  readonly #maxQueueDepth: number;

  constructor(options: { catalogue: Catalogue; backplane: Pick<Backplane, 'queue'>; maxQueueDepth: number }) {
    const { catalogue, backplane, maxQueueDepth } = options;
    this.#models = new Map(catalogue.models.map((model) => [model.id, model]));
    this.#depths = new Map(catalogue.models.map(({ id }) => [id, new QueueDepth({ backplane, model: id })]));
    this.#maxQueueDepth = maxQueueDepth;
  }

  /**
   * The model a request names.
   * @throws ServiceError modelNotFound, or invalidParameter when the model does something else.
   */
  model<T extends CatalogueModel['task']>(id: string, task: T): ModelOf<T> {
    const model = this.#models.get(id);
    if (model === undefined) throw new ServiceError('modelNotFound');
    if (!isFor(model, task)) {
      throw new ServiceError(
        'invalidParameter',
        `model: must be a ${task} model, and this is a ${model.task} model`,
      );
    }
    return model;
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
