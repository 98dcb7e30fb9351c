import { z } from 'zod';

/** What usage can be told apart by. */
export const usageGroupings = ['model', 'key', 'day'] as const;
export type UsageGrouping = (typeof usageGroupings)[number];

/** The longest range of one report. */
export const maxUsageDays = 366;

const dayMs = 24 * 60 * 60 * 1000;
/** Without a start, a report goes this far back. */
const usualDays = 30;

const moment = z
  .union([z.iso.date(), z.iso.datetime({ offset: true })], {
    error: 'must be a date (2026-01-31) or a time (2026-01-31T12:00:00Z)',
  })
  .transform((text) => new Date(text));

const groupings = z
  .union([z.string(), z.array(z.string())])
  .transform((given) => [given].flat().flatMap((text) => text.split(',')))
  .pipe(z.array(z.enum(usageGroupings)).max(usageGroupings.length));

/** The query of `GET /v1/usage`. */
export const usageQuerySchema = z
  .object({ start: moment.optional(), end: moment.optional(), group_by: groupings.optional() })
  .transform(({ start, end = new Date(), group_by: groupBy = [] }) => ({
    start: start ?? new Date(end.getTime() - usualDays * dayMs),
    end,
    groupBy: new Set<UsageGrouping>(groupBy),
  }))
  .refine(({ start, end }) => start < end, { path: ['start'], error: 'must be before end' })
  .refine(({ start, end }) => end.getTime() - start.getTime() <= maxUsageDays * dayMs, {
    path: ['start'],
    error: `must be at most ${maxUsageDays} days before end`,
  });
export type UsageQuery = z.output<typeof usageQuerySchema>;

/** The sum of one group; only what was grouped by is named. */
export const usageSumSchema = z
  .object({
    day: z.string().optional().meta({ description: 'UTC.' }),
    model: z.string().optional(),
    key_id: z.string().optional(),
    key_name: z.string().nullish().meta({ description: 'null when the key is there no more.' }),
    requests: z.int(),
    failed_requests: z.int().meta({ description: 'Those that were not answered with 200.' }),
    prompt_tokens: z.int(),
    completion_tokens: z.int(),
    cached_tokens: z.int().meta({ description: 'Prompt tokens that were not computed again.' }),
    total_tokens: z.int(),
  })
  .meta({ id: 'UsageSum' });
export type UsageSum = z.infer<typeof usageSumSchema>;

export const usageReportSchema = z
  .object({
    object: z.literal('list'),
    start: z.string(),
    end: z.string(),
    data: z.array(usageSumSchema),
  })
  .meta({ id: 'UsageReport' });
export type UsageReport = z.infer<typeof usageReportSchema>;
