import { z } from 'zod';
import {
  accountChangeSchema,
  accountLimitsSchema,
  accountSchema,
  auditEntrySchema,
  auditQuerySchema,
  createdKeySchema,
  createdWebhookSchema,
  deliverySchema,
  keySchema,
  limitChangeSchema,
  limitsPageSchema,
  modelChangeSchema,
  modelStatusSchema,
  newAccountSchema,
  newKeySchema,
  newNoticeSchema,
  newWebhookSchema,
  webhookSchema,
} from '../../contract/admin.js';
import { noticeSchema, onwardSchema, pageSchema } from '../../contract/notices.js';
import { usageQuerySchema, usageSumSchema } from '../../contract/usage.js';
import type { Catalogue } from '../../models/catalogue.js';
import { endKey, issueKey, toKey } from '../../platform/account-keys.js';
import { changeLimits, listLimits } from '../../platform/account-limits.js';
import { createAccount, listAccounts, requireAccount, updateAccount } from '../../platform/accounts.js';
import { readAuditLog } from '../../platform/audit-log.js';
import type { Database } from '../../platform/database/database.js';
import { listKeys } from '../../platform/keys.js';
import { changeModel, listModelStatuses } from '../../platform/model-registry/change-model.js';
import { createNotice, PrismaNotices } from '../../platform/notices/notices.js';
import type { PresenceBoard } from '../../platform/presence.js';
import {
  listDeliveries,
  listWebhooks,
  registerWebhook,
  removeWebhook,
} from '../../platform/webhooks/webhooks.js';
import { PostgresUsageReader } from '../usage-report.js';
import { validate } from '../validate.js';
import { type Endpoint, endpoint } from './endpoint.js';

export interface AdminServices {
  readonly database: Pick<Database, 'client' | 'query'>;
  readonly catalogue: Catalogue;
  readonly presence: Pick<PresenceBoard, 'workersOf'>;
}

/** The schemas of the administration that have names. */
export const adminSchemas = Object.fromEntries(
  [
    ...[accountSchema, newAccountSchema, accountChangeSchema, keySchema, newKeySchema, createdKeySchema],
    ...[accountLimitsSchema, limitChangeSchema, modelStatusSchema, modelChangeSchema, newNoticeSchema],
    ...[webhookSchema, newWebhookSchema, createdWebhookSchema, deliverySchema, auditEntrySchema],
  ].map((schema) => [String(schema.meta()?.id), schema]),
) as Readonly<Record<string, z.ZodType>>;

const ofAccount = {
  account: z.string().max(100).optional().meta({ description: 'The id or the name of an account.' }),
};

/** Everything that operators can do over HTTP. */
export function adminEndpoints(services: AdminServices): Endpoint[] {
  return [
    ...accountEndpoints(services),
    ...limitEndpoints(services),
    usageEndpoint(services),
    ...modelEndpoints(services),
    ...noticeEndpoints(services),
    ...webhookEndpoints(services),
    endpoint({
      method: 'get',
      path: '/admin/v1/audit',
      operationId: 'readAuditLog',
      summary: 'Who changed what, the newest first',
      query: auditQuerySchema,
      answers: { page: auditEntrySchema },
      run: ({ query }) => readAuditLog(services.database, query),
    }),
  ];
}

function accountEndpoints({ database }: AdminServices): Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: '/admin/v1/accounts',
      operationId: 'listAccounts',
      summary: 'List the accounts',
      query: onwardSchema,
      answers: { page: accountSchema },
      run: ({ query }) => listAccounts(database, query),
    }),
    endpoint({
      method: 'post',
      path: '/admin/v1/accounts',
      operationId: 'createAccount',
      summary: 'Create an account',
      body: newAccountSchema,
      answers: { one: accountSchema },
      run: ({ body, context }) => createAccount(body, context),
    }),
    endpoint({
      method: 'get',
      path: '/admin/v1/accounts/{id}',
      operationId: 'getAccount',
      summary: 'One account, by its id or its name',
      answers: { one: accountSchema },
      run: ({ id }) => requireAccount(database.client, id),
    }),
    endpoint({
      method: 'patch',
      path: '/admin/v1/accounts/{id}',
      operationId: 'changeAccount',
      summary: 'Change an account',
      body: accountChangeSchema,
      answers: { one: accountSchema },
      run: ({ id, body, context }) => updateAccount(id, body, context),
    }),
    endpoint({
      method: 'get',
      path: '/admin/v1/keys',
      operationId: 'listKeys',
      summary: 'List the keys, without their secrets',
      query: onwardSchema.extend(ofAccount),
      answers: { page: keySchema },
      run: async ({ query: { account, ...page } }) => {
        const accountId =
          account === undefined ? undefined : (await requireAccount(database.client, account)).id;
        return (await listKeys(database, { accountId, ...page })).map(toKey);
      },
    }),
    endpoint({
      method: 'post',
      path: '/admin/v1/keys',
      operationId: 'createKey',
      summary: 'Create a key',
      body: newKeySchema,
      answers: { one: createdKeySchema },
      run: async ({ body: { account, name, expires }, context }) => {
        const { secret, ...key } = await issueKey({ account, name, expiresAt: expires }, context);
        return { ...toKey(key), secret };
      },
    }),
    endpoint({
      method: 'delete',
      path: '/admin/v1/keys/{id}',
      operationId: 'revokeKey',
      summary: 'End a key for good',
      answers: { one: keySchema },
      run: async ({ id, context }) => toKey(await endKey(id, context)),
    }),
  ];
}

function limitEndpoints({ database, catalogue }: AdminServices): Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: '/admin/v1/limits',
      operationId: 'listLimits',
      summary: 'List the limits that differ from those of the catalogue',
      query: limitsPageSchema.extend(ofAccount),
      answers: { page: accountLimitsSchema },
      run: ({ query }) => listLimits(database, query),
    }),
    endpoint({
      method: 'patch',
      path: '/admin/v1/limits',
      operationId: 'changeLimits',
      summary: 'Set limits of an account',
      body: limitChangeSchema,
      answers: { one: accountLimitsSchema },
      run: ({ body, context }) => changeLimits(body, { ...context, catalogue }),
    }),
  ];
}

function usageEndpoint({ database }: AdminServices): Endpoint {
  return endpoint({
    method: 'get',
    path: '/admin/v1/usage',
    operationId: 'readUsage',
    summary: 'What an account has used',
    query: z.object({
      account: z.string().max(100).meta({ description: 'The id or the name of an account.' }),
      start: z
        .string()
        .optional()
        .meta({ description: 'A date or a time; 30 days before the end when absent.' }),
      end: z.string().optional().meta({ description: 'A date or a time; now when absent.' }),
      group_by: z
        .string()
        .optional()
        .meta({ description: 'Any of model, key and day, with commas between.' }),
    }),
    answers: { many: usageSumSchema },
    run: async ({ query: { account, ...range } }) => {
      const { id } = await requireAccount(database.client, account);
      return new PostgresUsageReader(database).sum(id, validate(usageQuerySchema, range, 'query'));
    },
  });
}

function modelEndpoints({ database, catalogue, presence }: AdminServices): Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: '/admin/v1/models',
      operationId: 'listModelStates',
      summary: 'List the models of the catalogue, whatever their state',
      answers: { many: modelStatusSchema },
      run: async () => {
        const statuses = await listModelStatuses(database, catalogue);
        return statuses.map((status) => ({ ...status, workers: presence.workersOf(status.model).length }));
      },
    }),
    endpoint({
      method: 'patch',
      path: '/admin/v1/models/{id}',
      operationId: 'changeModel',
      summary: 'Put a model online or offline, deprecate it, or decide who may use it',
      description: 'Counts in every process within a second, and makes a notice.',
      body: modelChangeSchema,
      answers: { one: modelStatusSchema },
      run: ({ id, body, context }) => changeModel(id, body, { ...context, catalogue }),
    }),
  ];
}

function noticeEndpoints({ database }: AdminServices): Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: '/admin/v1/notices',
      operationId: 'listAllNotices',
      summary: 'List the notices, whomever they are for, the newest first',
      query: pageSchema,
      answers: { page: noticeSchema },
      run: async ({ query }) => (await new PrismaNotices(database.client).listAll(query)).data,
    }),
    endpoint({
      method: 'post',
      path: '/admin/v1/notices',
      operationId: 'createNotice',
      summary: 'Tell everyone, or one account, something',
      body: newNoticeSchema,
      answers: { one: noticeSchema },
      run: ({ body, context }) => createNotice(body, context),
    }),
  ];
}

function webhookEndpoints({ database }: AdminServices): Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: '/admin/v1/webhooks',
      operationId: 'listWebhooks',
      summary: 'List the webhooks, without their secrets',
      answers: { many: webhookSchema },
      run: () => listWebhooks(database),
    }),
    endpoint({
      method: 'post',
      path: '/admin/v1/webhooks',
      operationId: 'registerWebhook',
      summary: 'Have every notice sent to an address',
      description:
        'Each is a POST of a WebhookEvent, signed as the Standard Webhooks specification has it: ' +
        '`webhook-signature` is `v1,` and the base64 of an HMAC-SHA-256 over `webhook-id`, `webhook-timestamp` and ' +
        'the body, joined by full stops; its key is the base64 after `whsec_`. Any answer but a 2xx within ten ' +
        'seconds has it sent again, later each time.',
      body: newWebhookSchema,
      answers: { one: createdWebhookSchema },
      run: ({ body, context }) => registerWebhook(body.url, context),
    }),
    endpoint({
      method: 'delete',
      path: '/admin/v1/webhooks/{id}',
      operationId: 'removeWebhook',
      summary: 'Remove a webhook and its log',
      answers: { one: webhookSchema },
      run: ({ id, context }) => removeWebhook(id, context),
    }),
    endpoint({
      method: 'get',
      path: '/admin/v1/webhooks/{id}/deliveries',
      operationId: 'listDeliveries',
      summary: 'What was sent to a webhook and how that went, the newest first',
      query: pageSchema,
      answers: { page: deliverySchema },
      run: ({ id, query }) => listDeliveries(database, id, query),
    }),
  ];
}
