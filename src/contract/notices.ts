import { z } from 'zod';

export const noticeKinds = [
  'model.online',
  'model.offline',
  'model.deprecated',
  'model.access',
  'general',
] as const;

/** What users of the service are told, as `GET /v1/notices` shows it and webhooks carry it. */
export const noticeSchema = z
  .object({
    id: z.string(),
    object: z.literal('notice'),
    created: z.int().meta({ description: 'Unix seconds.' }),
    kind: z.enum(noticeKinds),
    model: z.string().nullable().meta({ description: 'The model that it is about.' }),
    audience: z.enum(['everyone', 'account']).meta({ description: 'Whom it is for.' }),
    title: z.string(),
    text: z.string(),
  })
  .meta({ id: 'Notice' });
export type Notice = z.infer<typeof noticeSchema>;

export const noticeListSchema = z
  .object({
    object: z.literal('list'),
    data: z.array(noticeSchema).meta({ description: 'The newest first.' }),
    has_more: z.boolean().meta({ description: 'Whether there are older ones: ask with `before`.' }),
  })
  .meta({ id: 'NoticeList' });
export type NoticeList = z.infer<typeof noticeListSchema>;

/** A place in a list that is sorted by id, and how much of it to show. */
export const pageSchema = z.object({
  limit: z.coerce.number().int().min(1).max(100).default(20).meta({ description: 'How many to show.' }),
  before: z
    .uuid('must be an id')
    .optional()
    .meta({ description: 'Only those older than the one of this id.' }),
});
export type Page = z.infer<typeof pageSchema>;

/** A place in a list that begins with the oldest, and how much of it to show. */
export const onwardSchema = z.object({
  limit: pageSchema.shape.limit,
  after: z
    .uuid('must be an id')
    .optional()
    .meta({ description: 'Only those newer than the one of this id.' }),
});
export type Onward = z.infer<typeof onwardSchema>;

/** The body of a webhook. */
export const webhookEventSchema = z
  .object({
    type: z.literal('notice.created'),
    timestamp: z.iso.datetime().meta({ description: 'When the notice was made.' }),
    data: noticeSchema.extend({
      account_id: z.string().nullable().meta({ description: 'The account that it is for.' }),
    }),
  })
  .meta({ id: 'WebhookEvent' });
export type WebhookEvent = z.infer<typeof webhookEventSchema>;
