import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { ServiceError } from '../../contract/errors.js';
import type { Model, ModelList } from '../../contract/models.js';
import type { Catalogue, CatalogueModel } from '../../models/catalogue.js';
import { validate } from '../validate.js';

const filterSchema = z.object({
  type: z.enum(['text']).optional(),
  sub_type: z.enum(['chat', 'reranker']).optional(),
});

/** `GET /v1/models` and `GET /v1/models/{id}`. */
export function addModelRoutes(app: FastifyInstance, { catalogue }: { catalogue: Catalogue }): void {
  const models = catalogue.models.map(toModel);

  app.get('/v1/models', async (request): Promise<ModelList> => {
    const filter = validate(filterSchema, request.query, 'query');
    const matches = (model: Model) =>
      (filter.type ?? model.type) === model.type && (filter.sub_type ?? model.sub_type) === model.sub_type;
    return { object: 'list', data: models.filter(matches) };
  });

  // A wildcard, because ids such as "owner/name" hold slashes.
  app.get<{ Params: { '*': string } }>('/v1/models/*', async (request): Promise<Model> => {
    const model = models.find(({ id }) => id === request.params['*']);
    // 400 as everywhere: in this contract one code has one status.
    if (model === undefined) throw new ServiceError('modelNotFound');
    return model;
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
