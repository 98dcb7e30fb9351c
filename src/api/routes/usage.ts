import type { FastifyInstance } from 'fastify';
import { type UsageReport, usageQuerySchema } from '../../contract/usage.js';
import { usageCsv } from '../usage-csv.js';
import type { UsageReader } from '../usage-report.js';
import { validate } from '../validate.js';

/** `GET /v1/usage`: what the account of the key has used. */
export function addUsageRoute(app: FastifyInstance, { usage }: { usage: UsageReader }): void {
  app.get('/v1/usage', async (request, response): Promise<UsageReport | string> => {
    const query = validate(usageQuerySchema, request.query, 'query');
    const data = await usage.sum(request.caller.accountId, query);
    response.header('vary', 'accept');
    if (wantsCsv(request.headers.accept)) {
      response.type('text/csv; charset=utf-8');
      return usageCsv(data, query.groupBy);
    }
    return { object: 'list', start: query.start.toISOString(), end: query.end.toISOString(), data };
  });
}

function wantsCsv(accept = ''): boolean {
  return accept.split(',').some((type) => type.split(';')[0]!.trim().toLowerCase() === 'text/csv');
}
