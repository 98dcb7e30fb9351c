import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { renderPage } from '../docs/page.js';
import { style } from '../docs/style.js';
import { type AdminDescription, buildOpenApi } from '../openapi/build-open-api.js';

/** `GET /openapi.json`, and the same for people at `GET /docs`. Both are made once. */
export function addDocumentationRoutes(
  app: FastifyInstance,
  options: { version: string; admin?: AdminDescription },
): void {
  const document = buildOpenApi(options);
  const text = JSON.stringify(document);
  const page = renderPage(document);
  // The page needs nothing but its own styles, and may therefore load nothing else.
  const styleHash = createHash('sha256').update(style).digest('base64');
  const policy = `default-src 'none'; style-src 'sha256-${styleHash}'; base-uri 'none'; frame-ancestors 'none'`;

  app.get('/openapi.json', async (_request, response) => {
    response.type('application/json; charset=utf-8');
    return text;
  });
  app.get('/docs', async (_request, response) => {
    response.type('text/html; charset=utf-8').header('content-security-policy', policy);
    return page;
  });
}
