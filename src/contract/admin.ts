import { z } from 'zod';
import { pageSchema } from './notices.js';

/** Text on one line: what people and logs can show without being misled. */
const line = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202A-\u202E\u2066-\u2069]*$/u, 'must be text on one line');

/** Text on any number of lines. */
const prose = z
  .string()
  .min(1)
  .max(10_000)
  .regex(/^(?:[^\p{Cc}\p{Cs}]|[\n\t])*$/u, 'must be text');

const date = z.iso
  .datetime({ offset: true, error: 'must be a date and time such as 2026-12-31T00:00:00Z' })
  .transform((text) => new Date(text));

export const accountNameSchema = line(100);

export const accountSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    disabled: z.boolean().meta({ description: 'Its requests are refused.' }),
    verified: z.boolean().meta({ description: 'Verified by real name.' }),
    created: z.string().meta({ description: 'Date and time.' }),
  })
  .meta({ id: 'Account' });
export type Account = z.infer<typeof accountSchema>;

export const newAccountSchema = z
  .object({
    name: accountNameSchema,
    disabled: z.boolean().default(false),
    verified: z.boolean().default(false),
  })
  .meta({ id: 'NewAccount' });
export type NewAccount = z.infer<typeof newAccountSchema>;

export const accountChangeSchema = z
  .object({
    name: accountNameSchema.optional(),
    disabled: z.boolean().optional(),
    verified: z.boolean().optional(),
  })
  .meta({ id: 'AccountChange', description: 'What is left out stays as it is.' });
export type AccountChange = z.infer<typeof accountChangeSchema>;

export const keySchema = z
  .object({
    id: z.string(),
    account: z.string().meta({ description: "The account's name." }),
    name: z.string(),
    prefix: z.string().meta({ description: 'The first characters of the key.' }),
    created: z.string(),
    last_used: z.string().nullable(),
    expires: z.string().nullable(),
    revoked: z.string().nullable(),
  })
  .meta({ id: 'Key' });
export type Key = z.infer<typeof keySchema>;

export const newKeySchema = z
  .object({
    account: line(100).meta({ description: 'The id or the name of an account.' }),
    name: line(100).default('default'),
    expires: date.optional(),
  })
  .meta({ id: 'NewKey' });

export const createdKeySchema = keySchema
  .extend({ secret: z.string().meta({ description: 'The key itself; it is not shown again.' }) })
  .meta({ id: 'CreatedKey' });

const limit = z.int().min(-1).nullable();

/** The limits of one account: of one model, or of every model that has no such row. */
const limitFields = {
  rpm: limit
    .optional()
    .meta({ description: 'Requests a minute. In each: -1 is no limit, null the usual one.' }),
  rpd: limit.optional().meta({ description: 'Requests a day.' }),
  tpm: limit.optional().meta({ description: 'Tokens a minute.' }),
  tpd: limit.optional().meta({ description: 'Tokens a day.' }),
  ipm: limit.optional().meta({ description: 'Images a minute.' }),
  ipd: limit.optional().meta({ description: 'Images a day.' }),
};

export const accountLimitsSchema = z
  .object({
    id: z.string().meta({ description: 'The id of the account, and then, after a slash, the model.' }),
    account: z.string().meta({ description: "The account's name." }),
    model: z.string().nullable().meta({ description: 'Null: models without limits of their own.' }),
    rpm: limit,
    rpd: limit,
    tpm: limit,
    tpd: limit,
    ipm: limit,
    ipd: limit,
  })
  .meta({ id: 'AccountLimits' });
export type AccountLimits = z.infer<typeof accountLimitsSchema>;

export const limitChangeSchema = z
  .object({
    account: line(100).meta({ description: 'The id or the name of an account.' }),
    model: line(200).nullish().meta({ description: 'Absent: models without limits of their own.' }),
    ...limitFields,
  })
  .meta({ id: 'LimitChange', description: 'What is left out stays as it is.' });
export type LimitChange = z.infer<typeof limitChangeSchema>;

/** A place in the list of limits, and how much of it to show. */
export const limitsPageSchema = z.object({
  limit: pageSchema.shape.limit,
  after: z
    .string()
    .max(300)
    .regex(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(\/[^\p{Cc}]+)?$/u, 'must be an id')
    .optional()
    .meta({ description: 'Only those behind the one of this id.' }),
});

export const limitNames = ['rpm', 'rpd', 'tpm', 'tpd', 'ipm', 'ipd'] as const;

export const modelStates = ['online', 'offline', 'deprecated'] as const;
export const modelAccesses = ['open', 'listed', 'verified'] as const;

export const modelStatusSchema = z
  .object({
    model: z.string(),
    task: z.enum(['chat', 'rerank']),
    state: z.enum(modelStates),
    deprecated: z.string().nullable().meta({ description: 'Since when.' }),
    sunset: z.string().nullable().meta({ description: 'When a deprecated model stops being served.' }),
    access: z.enum(modelAccesses),
    accounts: z
      .array(z.object({ id: z.string(), name: z.string() }))
      .meta({ description: 'The list of the model: who may use it while its access is `listed`.' }),
    workers: z.int().optional().meta({ description: 'Workers that serve it now.' }),
  })
  .meta({ id: 'ModelStatus' });
export type ModelStatus = z.infer<typeof modelStatusSchema>;

export const modelChangeSchema = z
  .object({
    state: z.enum(modelStates).optional(),
    sunset: date
      .optional()
      .meta({ description: 'Needed for `deprecated`: when the model stops being served.' }),
    access: z.enum(modelAccesses).optional(),
    accounts: z
      .array(line(100))
      .max(1_000)
      .optional()
      .meta({ description: 'The whole list: ids or names of accounts.' }),
  })
  .meta({ id: 'ModelChange', description: 'What is left out stays as it is.' });
export type ModelChange = z.infer<typeof modelChangeSchema>;

export const newNoticeSchema = z
  .object({
    title: line(200),
    text: prose,
    account: line(100).optional().meta({ description: 'The id or name of the only account that it is for.' }),
    model: line(200).optional(),
  })
  .meta({ id: 'NewNotice' });
export type NewNotice = z.infer<typeof newNoticeSchema>;

export const webhookUrlSchema = z
  .url({ protocol: /^https?$/, error: 'must be an http or https URL' })
  .max(2_000)
  .regex(/^[\x21-\x7e]*$/, 'must be an http or https URL without spaces, in ASCII')
  .refine((text) => !URL.canParse(text) || new URL(text).username + new URL(text).password === '', {
    error: 'must not carry a user name or password',
  });

export const newWebhookSchema = z.object({ url: webhookUrlSchema }).meta({ id: 'NewWebhook' });

export const webhookSchema = z
  .object({ id: z.string(), url: z.string(), created: z.string() })
  .meta({ id: 'Webhook' });
export type Webhook = z.infer<typeof webhookSchema>;

export const createdWebhookSchema = webhookSchema
  .extend({ secret: z.string().meta({ description: 'What deliveries are signed with; not shown again.' }) })
  .meta({ id: 'CreatedWebhook' });

export const deliverySchema = z
  .object({
    id: z.string(),
    notice: z.string().meta({ description: 'The id of the notice.' }),
    title: z.string(),
    state: z.enum(['pending', 'delivered', 'failed']),
    created: z.string(),
    attempts: z.array(
      z.object({
        at: z.string(),
        status: z.int().nullable().meta({ description: 'The HTTP status that came back.' }),
        error: z.string().nullable(),
        duration_ms: z.int(),
      }),
    ),
  })
  .meta({ id: 'WebhookDelivery' });
export type Delivery = z.infer<typeof deliverySchema>;

export const auditEntrySchema = z
  .object({
    id: z.string(),
    at: z.string(),
    actor: z.string(),
    action: z.string(),
    target: z.string(),
    before: z.unknown(),
    after: z.unknown(),
  })
  .meta({ id: 'AuditEntry' });
export type AuditEntry = z.infer<typeof auditEntrySchema>;

export const auditQuerySchema = pageSchema.extend({ target: line(200).optional() });
