import { randomInt } from 'node:crypto';
import { ServiceError } from '../contract/errors.js';
import type { ChatJob } from '../contract/job.js';
import type { Sampling } from '../engine/request.js';
import type { DecoderManifest } from '../models/manifest.js';

/** What the contract promises for fields that neither the request nor the model sets. */
const contractDefaults = { temperature: 0.7, topP: 0.7, topK: 50 } as const;

/**
 * How the tokens of a request are drawn. The temperature of the model's authors counts where the request and the
 * catalogue name none; a request without a seed gets a random one.
 * @throws ServiceError invalidParameter when a token of logit_bias is not in the vocabulary.
 */
export function resolveSampling(job: ChatJob, manifest: DecoderManifest): Sampling {
  return {
    temperature: job.temperature ?? manifest.generation.temperature ?? contractDefaults.temperature,
    topP: job.topP ?? contractDefaults.topP,
    topK: job.topK ?? contractDefaults.topK,
    minP: job.minP ?? 0,
    frequencyPenalty: job.frequencyPenalty ?? 0,
    presencePenalty: job.presencePenalty ?? 0,
    seed: job.seed ?? randomInt(2 ** 32),
    logitBias: Object.entries(job.logitBias ?? {}).map(([key, bias]) => {
      const token = Number(key);
      if (token < manifest.vocabularySize) return [token, bias] as const;
      throw new ServiceError(
        'invalidParameter',
        `logit_bias: token ${key} is outside the vocabulary of ${manifest.vocabularySize}`,
      );
    }),
  };
}
