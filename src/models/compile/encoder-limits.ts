import { join } from 'node:path';
import { z } from 'zod';
import { CheckpointError, type EncoderConfig } from './checkpoint.js';
import type { HuggingFaceTokens } from './hugging-face-tokens.js';
import { readJsonIfPresent } from './json-file.js';

const sentenceBertSchema = z.object({ max_seq_length: z.int().positive().nullish() });
const poolingSchema = z.object({ pooling_mode_mean_tokens: z.boolean().default(false) });

/**
 * The tokens that a sequence may have: as many as the model has `positions`, or fewer if its authors say so.
 * @throws CheckpointError when a bi-encoder's embedding is not the mean of its rows.
 */
export async function readEncoderLimits(
  folder: string,
  {
    scoring,
    positions,
    tokens,
  }: { scoring: EncoderConfig['scoring']; positions: number; tokens: HuggingFaceTokens },
): Promise<number> {
  const poolingPath = join(folder, '1_Pooling', 'config.json');
  const pooling = await readJsonIfPresent(poolingPath, poolingSchema);
  if (scoring === 'bi-encoder' && pooling?.pooling_mode_mean_tokens === false) {
    throw new CheckpointError(`${poolingPath}: only mean pooling is supported`);
  }
  const sentenceBert = await readJsonIfPresent(join(folder, 'sentence_bert_config.json'), sentenceBertSchema);
  const published = [tokens.maxLength, sentenceBert?.max_seq_length].filter((length) => length != null);
  return Math.min(positions, ...published);
}
