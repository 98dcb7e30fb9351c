import { componentSchemas } from './components.js';
import type { OpenApiDocument } from './document.js';
import {
  chatOperation,
  getModelOperation,
  listModelsOperation,
  rerankOperation,
  servicePaths,
} from './operations.js';

/** The description of the whole service, from the schemas that validate requests. */
export function buildOpenApi({ version }: { version: string }): OpenApiDocument {
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
      { name: 'Service', description: 'For those who run the service; no key is needed.' },
    ],
    security: [{ key: [] }],
    paths: {
      '/v1/chat/completions': { post: chatOperation() },
      '/v1/rerank': { post: rerankOperation() },
      '/v1/models': { get: listModelsOperation() },
      '/v1/models/{id}': { get: getModelOperation() },
      ...servicePaths(),
    },
    components: {
      schemas: componentSchemas(),
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: 'An API key: `Authorization: Bearer sk-...`' },
      },
    },
  };
}
