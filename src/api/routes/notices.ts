import type { FastifyInstance } from 'fastify';
import { type NoticeList, pageSchema } from '../../contract/notices.js';
import { atomFeed } from '../../platform/notices/atom-feed.js';
import type { NoticeReader } from '../../platform/notices/notices.js';
import { validate } from '../validate.js';

/** As many as a reader shows at once; those who want more ask for pages. */
const feedLimit = 50;

/** `GET /v1/notices`, and the same as an Atom feed: what everyone is told, and what the caller's account is. */
export function addNoticeRoutes(app: FastifyInstance, { notices }: { notices: NoticeReader }): void {
  app.get('/v1/notices', async (request): Promise<NoticeList> => {
    const page = validate(pageSchema, request.query, 'query');
    return notices.list(request.caller.accountId, page);
  });

  app.get('/v1/notices.atom', async (request, response) => {
    const { accountId } = request.caller;
    const { data } = await notices.list(accountId, { limit: feedLimit });
    response.type('application/atom+xml; charset=utf-8').header('cache-control', 'private');
    // Each account has a feed of its own.
    return atomFeed(data, { id: `urn:uuid:${accountId}`, self: '/v1/notices.atom', updated: new Date(0) });
  });
}
