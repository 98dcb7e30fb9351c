import fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify';
import type { Catalogue } from '../models/catalogue.js';
import type { Backplane } from '../platform/backplane/backplane.js';
import type { Config } from '../platform/config.js';
import type { Database } from '../platform/database/database.js';
import type { Logger } from '../platform/logger.js';
import { createRegistry } from '../platform/metrics.js';
import { LiveCatalogue } from '../platform/model-registry/live-catalogue.js';
import type { PresenceBoard } from '../platform/presence.js';
import { AdminGate, addAdminRoutes } from './admin/admin-routes.js';
import { describeEndpoints } from './admin/endpoint.js';
import { adminEndpoints, adminSchemas } from './admin/endpoints.js';
import { Admission } from './admit.js';
import type { ApiDatabase } from './api-database.js';
import { Authenticator } from './authenticate.js';
import { answerBrokenRequest, leaveNothingToNode } from './broken-request.js';
import { Connections } from './connections.js';
import { drainOnClose } from './drain.js';
import { explain, handleErrors, sendError } from './errors.js';
import { addGate } from './gate.js';
import { Idempotency } from './idempotency.js';
import { acceptJsonOnly } from './json-body.js';
import { LimitGate } from './limit-gate.js';
import { ApiMetrics } from './metrics.js';
import { Replies, type ReplyTiming } from './replies.js';
import { followRequests } from './request-context.js';
import { requestIdHeader, traceId } from './request-id.js';
import { RouteTable } from './route-table.js';
import { addChatRoutes } from './routes/chat.js';
import { addDocumentationRoutes } from './routes/documentation.js';
import { addHealthRoutes } from './routes/health.js';
import { addMetricsRoute } from './routes/metrics.js';
import { addModelRoutes } from './routes/models.js';
import { addNoticeRoutes } from './routes/notices.js';
import { addRerankRoutes } from './routes/rerank.js';
import { addUsageRoute } from './routes/usage.js';
import { keepAliveMs } from './sse.js';
import { UsageLedger } from './usage-ledger.js';

export interface AppOptions {
  /** Names this process to the workers; the presence board announces the same. */
  readonly apiId: string;
  readonly config: Pick<Config, 'bodyLimitBytes' | 'requestTimeoutMs' | 'maxQueueDepth'> &
    Partial<Pick<Config, 'trustProxy'>>;
  readonly database: ApiDatabase;
  /** The administration; there is none without. */
  readonly admin?: { readonly token: string; readonly database: Pick<Database, 'client' | 'query'> };
  readonly backplane: Backplane;
  readonly presence: Pick<PresenceBoard, 'workersOf'>;
  readonly catalogue: Catalogue;
  readonly logger: Logger;
  /** Of this service, for its description. */
  readonly version: string;
  readonly timing?: {
    readonly keepAliveMs?: number;
    /** How long requests may take to end when the app closes. */
    readonly drainMs?: number;
    readonly replies?: Partial<ReplyTiming>;
  };
}

/** A request must have arrived in full by then. */
const arrivalTimeoutMs = 120_000;

/**
 * The HTTP service, ready for `inject` or `listen`. Closing it lets requests end and then writes what they cost; the
 * database, the backplane and the presence board stay open.
 */
export async function buildApp(options: AppOptions): Promise<FastifyInstance> {
  const { apiId, config, database, backplane, presence, catalogue, logger, timing } = options;
  const replies = await Replies.open({ apiId, backplane, logger, timing: timing?.replies });
  const models = await LiveCatalogue.open({
    catalogue,
    store: database.models,
    channel: backplane.channel,
    logger,
  });
  const ledger = new UsageLedger({ store: database.usage, logger });
  const limits = new LimitGate({ apiId, store: database.limits, logger });
  const metrics = new ApiMetrics({
    registry: createRegistry(),
    backplane,
    presence,
    models: catalogue.models.map(({ id }) => id),
    inFlight: () => replies.size,
  });
  const { requestTimeoutMs, maxQueueDepth } = config;

  const app = fastify({
    loggerInstance: logger as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: traceId,
    bodyLimit: config.bodyLimitBytes,
    trustProxy: config.trustProxy ?? false,
    requestTimeout: arrivalTimeoutMs,
    return503OnClosing: false,
    routerOptions: { maxParamLength: 1_000 },
    http: { requireHostHeader: false },
    clientErrorHandler: answerBrokenRequest,
    frameworkErrors: (error, request, response) => {
      response.header(requestIdHeader, request.id);
      sendError(response, explain(error, request.log));
    },
  });
  const routes = new RouteTable(app);
  handleErrors(app);
  leaveNothingToNode(app);
  acceptJsonOnly(app);
  const connections = new Connections(app);
  followRequests(app, { connections, metrics });
  drainOnClose(app, { connections, replies, ledger, limits, drainMs: timing?.drainMs });
  const authenticator = new Authenticator({ keys: database.keys, logger });
  await authenticator.listen(backplane.channel);
  app.addHook('onClose', () => authenticator.close());
  app.addHook('onClose', () => models.close());
  const admin = options.admin && new AdminGate({ token: options.admin.token, logger });
  addGate(app, { authenticator, routes, admin });

  const idempotency = new Idempotency({ store: database.idempotency, apiId, requestTimeoutMs, logger });
  app.addHook('onClose', async () => idempotency.close());
  const services = {
    apiId,
    catalogue,
    backplane,
    replies,
    ledger,
    limits,
    idempotency,
    metrics,
    requestTimeoutMs,
  };
  const admission = new Admission({ models, backplane, maxQueueDepth });
  const operations = { ...services, admission, keepAliveMs: timing?.keepAliveMs ?? keepAliveMs };
  addChatRoutes(app, operations);
  addRerankRoutes(app, operations);
  addModelRoutes(app, { models });
  addNoticeRoutes(app, database);
  addUsageRoute(app, { usage: database.usageReports });
  addHealthRoutes(app, { database, backplane, presence, models });
  addMetricsRoute(app, { metrics });
  const endpoints =
    options.admin && adminEndpoints({ database: options.admin.database, catalogue, presence });
  if (options.admin && endpoints) {
    const context = { database: options.admin.database, backplane, logger };
    addAdminRoutes(app, { endpoints, context });
  }
  addDocumentationRoutes(app, {
    version: options.version,
    admin: endpoints && { paths: describeEndpoints(endpoints), schemas: adminSchemas },
  });
  await limits.open();
  await app.ready();
  return app;
}
