import type { z } from 'zod';
import type {
  Account,
  AccountChange,
  AccountLimits,
  AuditEntry,
  Delivery,
  Key,
  LimitChange,
  ModelStatus,
  NewNotice,
  Webhook,
} from '../../contract/admin.js';
import type { Notice } from '../../contract/notices.js';
import type { UsageSum } from '../../contract/usage.js';
import { examples as usual } from '../openapi/examples.js';

const created = '2026-11-20T09:30:00.000Z';
const { id: model } = usual.model.plain.value;
const [notice] = usual.noticeList.plain.value.data as [Notice];

const account: Account = {
  id: '019e6a10-7c40-7b2d-8e11-5a0c3f6d9b27',
  name: 'team-a',
  disabled: false,
  verified: true,
  created,
};

const change: AccountChange = { disabled: true };

const key: Key = {
  id: '019e6a11-03d8-7f60-93a5-c1e27d84b6f0',
  account: account.name,
  name: 'laptop',
  prefix: 'sk-q7Rt2vX',
  created,
  last_used: null,
  expires: '2027-06-30T00:00:00.000Z',
  revoked: null,
};

const limitChange: LimitChange = { account: account.name, model, rpm: 60, tpd: -1 };

const limits: AccountLimits = {
  id: `${account.id}/${model}`,
  account: account.name,
  model,
  rpm: 60,
  rpd: null,
  tpm: null,
  tpd: -1,
  ipm: null,
  ipd: null,
};

const status: ModelStatus = {
  model,
  task: 'chat',
  state: 'deprecated',
  deprecated: created,
  sunset: '2027-06-30T00:00:00.000Z',
  access: 'listed',
  accounts: [{ id: account.id, name: account.name }],
  workers: 1,
};

const newNotice: NewNotice = {
  title: 'Maintenance on Sunday',
  text: 'From 6 to 7 UTC requests may wait longer than usual.',
  account: account.name,
};

const webhook: Webhook = {
  id: '019e6a12-91b4-7d05-a8f3-7e62c0d1945b',
  url: 'https://hooks.example.org/headrace',
  created,
};

const delivery: Delivery = {
  id: '019e6a1c-5a0b-7e18-b4c7-03d9f2a586e1',
  notice: notice.id,
  title: notice.title,
  state: 'delivered',
  created,
  attempts: [
    { at: created, status: 503, error: 'status 503', duration_ms: 41 },
    { at: '2026-11-20T09:30:05.000Z', status: 204, error: null, duration_ms: 12 },
  ],
};

const entry: AuditEntry = {
  id: '019e6a1d-20f5-7c9a-8d3b-64e1b7a0c258',
  at: created,
  actor: 'admin:192.0.2.10',
  action: 'account.update',
  target: account.id,
  before: account,
  after: { ...account, disabled: true },
};

const sum: UsageSum = {
  model,
  requests: 128,
  failed_requests: 2,
  prompt_tokens: 35_840,
  completion_tokens: 20_412,
  cached_tokens: 0,
  total_tokens: 56_252,
};

/** One for each schema of the administration, by its name. */
const examples: Readonly<Record<string, unknown>> = {
  Account: account,
  NewAccount: { name: account.name, verified: true },
  AccountChange: change,
  Key: key,
  NewKey: { account: account.name, name: key.name, expires: '2027-06-30T00:00:00Z' },
  CreatedKey: { ...key, secret: `${key.prefix}…` },
  AccountLimits: limits,
  LimitChange: limitChange,
  UsageSum: sum,
  ModelStatus: status,
  ModelChange: {
    state: 'deprecated',
    sunset: '2027-06-30T00:00:00Z',
    access: 'listed',
    accounts: [account.name],
  },
  Notice: notice,
  NewNotice: newNotice,
  Webhook: webhook,
  NewWebhook: { url: webhook.url },
  CreatedWebhook: { ...webhook, secret: 'whsec_…' },
  WebhookDelivery: delivery,
  AuditEntry: entry,
};

/** What a value of a schema of the administration looks like. */
export function exampleOf(schema: z.ZodType): unknown {
  const id = String(schema.meta()?.id);
  if (!Object.hasOwn(examples, id)) throw new Error(`There is no example of ${id}. This is a bug.`);
  return examples[id];
}
