import { z } from 'zod';

/** The six limits: requests, tokens and images in one UTC minute and one UTC day. */
export const limitNames = ['rpm', 'rpd', 'tpm', 'tpd', 'ipm', 'ipd'] as const;
export const limitNameSchema = z.enum(limitNames);
export type LimitName = z.infer<typeof limitNameSchema>;

/** The largest limit that can be set; a larger one would be none. */
const maxLimit = 2_147_483_647;
const limit = z.int().min(0).max(maxLimit).optional();

/** Limits of one account on one model. What is absent is not limited. */
export const limitsSchema = z.strictObject({
  rpm: limit,
  rpd: limit,
  tpm: limit,
  tpd: limit,
  ipm: limit,
  ipd: limit,
});
export type Limits = z.infer<typeof limitsSchema>;
