import type { z } from 'zod';
import { componentSchemas } from './components.js';
import type { OpenApiDocument } from './document.js';
import {
  chatOperation,
  getModelOperation,
  listModelsOperation,
  listNoticesOperation,
  noticeFeedOperation,
  rerankOperation,
  servicePaths,
} from './operations.js';
import { usageOperation } from './usage-operation.js';
import { webhooks } from './webhooks.js';

/** The part for operators, where the service has one. */
export interface AdminDescription {
  readonly paths: OpenApiDocument['paths'];
  readonly schemas: Readonly<Record<string, z.ZodType>>;
}

/** The description of the whole service, from the schemas that validate requests. */
export function buildOpenApi(options: { version: string; admin?: AdminDescription }): OpenApiDocument {
  const { version, admin } = options;
  return {
    openapi: '3.1.0',
    info: {
      title: 'Headrace',
      version,
      description:
        'Chat completions and rerank from models that your team runs itself. Every response carries ' +
        '`x-request-id`: your own when you send one, else a new one.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    tags: [
      { name: 'Inference', description: 'The two operations.' },
      { name: 'Models', description: 'What is served.' },
      { name: 'Notices', description: 'What users of the service are told.' },
      { name: 'Usage', description: 'What an account has used.' },
      { name: 'Service', description: 'For those who run the service; no key is needed.' },
      ...(admin
        ? [{ name: 'Administration', description: 'For operators, with a token of their own.' }]
        : []),
    ],
    security: [{ key: [] }],
    paths: {
      '/v1/chat/completions': { post: chatOperation() },
      '/v1/rerank': { post: rerankOperation() },
      '/v1/models': { get: listModelsOperation() },
      '/v1/models/{id}': { get: getModelOperation() },
      '/v1/notices': { get: listNoticesOperation() },
      '/v1/notices.atom': { get: noticeFeedOperation() },
      '/v1/usage': { get: usageOperation() },
      ...servicePaths(),
      ...admin?.paths,
    },
    webhooks: webhooks(),
    components: {
      schemas: componentSchemas(admin?.schemas ?? {}),
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: 'An API key: `Authorization: Bearer sk-...`' },
        ...(admin && {
          admin: {
            type: 'http',
            scheme: 'bearer',
            description: 'The token of the administration: `Authorization: Bearer ...`',
          },
        }),
      },
    },
  };
}
