import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { ServiceError } from '../../contract/errors.js';
import type { Model, ModelList } from '../../contract/models.js';
import type { CatalogueModel } from '../../models/catalogue.js';
import type { LiveCatalogue } from '../../platform/model-registry/live-catalogue.js';
import { isServed } from '../../platform/model-registry/model-state.js';
import { setDeprecationHeaders } from '../deprecation-headers.js';
import { validate } from '../validate.js';

const filterSchema = z.object({
  type: z.enum(['text']).optional(),
  sub_type: z.enum(['chat', 'reranker']).optional(),
});

/** `GET /v1/models` and `GET /v1/models/{id}`. */
export function addModelRoutes(
  app: FastifyInstance,
  { models }: { models: Pick<LiveCatalogue, 'served' | 'find'> },
): void {
  app.get('/v1/models', async (request): Promise<ModelList> => {
    const filter = validate(filterSchema, request.query, 'query');
    const matches = (model: Model) =>
      (filter.type ?? model.type) === model.type && (filter.sub_type ?? model.sub_type) === model.sub_type;
    return { object: 'list', data: models.served().map(toModel).filter(matches) };
  });

  // A wildcard, because ids such as "owner/name" hold slashes.
  app.get<{ Params: { '*': string } }>('/v1/models/*', async (request, response): Promise<Model> => {
    const model = models.find(request.params['*']);
    // 400 as everywhere: in this contract one code has one status.
    if (model === undefined || !isServed(model.state, new Date())) throw new ServiceError('modelNotFound');
    setDeprecationHeaders(response, model.state);
    return toModel(model.entry);
  });
}

function toModel(model: CatalogueModel): Model {
  return {
    id: model.id,
    object: 'model',
    created: model.created,
    owned_by: model.ownedBy,
    type: 'text',
    sub_type: model.task === 'chat' ? 'chat' : 'reranker',
    ...(model.contextLength === undefined ? {} : { context_length: model.contextLength }),
    capabilities: model.task === 'chat' ? model.capabilities : [],
  };
}
