import type { FastifyInstance } from 'fastify';
import type { ApiMetrics } from '../metrics.js';

/** `GET /metrics`, in the text format of Prometheus. */
export function addMetricsRoute(app: FastifyInstance, { metrics }: { metrics: ApiMetrics }): void {
  app.get('/metrics', async (_request, response) => {
    response.type(metrics.registry.contentType);
    return metrics.registry.metrics();
  });
}
