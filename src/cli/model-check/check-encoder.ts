import { EncoderEngine } from '../../engine/encoder-engine.js';
import type { EncoderRunner } from '../../engine/encoder-runner.js';
import type { EncoderManifest } from '../../models/manifest.js';
import { cosineRelevance, sigmoid } from '../../worker/relevance.js';
import type { FormattedSequence } from '../../worker/sequence-format.js';
import type { Tokenizer } from '../../worker/tokenizer.js';
import { largestDifference } from './check-decoder.js';
import type { BiEncoderCases, CrossEncoderCases } from './reference-cases.js';

/** How an encoder did on one document. */
export interface EncoderResult {
  readonly document: number;
  /** Of a cross-encoder its sigmoid of the logit, of a bi-encoder the cosine. */
  readonly score: number;
  /** The largest difference of the score and of what it was computed from: the logit, or the embedding. */
  readonly largest_error: number;
  /** Whether the tokens were those of the reference; only a cross-encoder's cases say. */
  readonly tokens_equal?: boolean;
}

/** What an encoder is run with. */
export interface EncoderUnderTest {
  readonly runner: EncoderRunner;
  readonly manifest: EncoderManifest;
  readonly tokenizer: Tokenizer;
}

/** Scores the documents from their texts, with the tokenizer and the engine that serve requests. */
export async function checkCrossEncoder(
  encoder: EncoderUnderTest,
  cases: CrossEncoderCases,
): Promise<EncoderResult[]> {
  const { format } = encoder.tokenizer;
  const query = await encoder.tokenizer.encode(cases.query);
  const documents = await encoder.tokenizer.encodeBatch(cases.documents);
  const sequences = documents.map((document) => format.pair(query, document));
  const logits = await encode(encoder, sequences);
  return sequences.map(({ tokens }, document) => {
    const logit = logits[document]!;
    const score = sigmoid(logit);
    const reference = [cases.logits[document]!, cases.relevance_scores[document]!];
    return {
      document,
      score,
      largest_error: largestDifference([logit, score], reference),
      tokens_equal: tokens.join() === cases.input_ids[document]?.join(),
    };
  });
}

/** Embeds query and documents from their texts, with the tokenizer and the engine that serve requests. */
export async function checkBiEncoder(
  encoder: EncoderUnderTest,
  cases: BiEncoderCases,
): Promise<EncoderResult[]> {
  const { dimension } = encoder.manifest;
  const texts = [cases.query, ...cases.documents];
  const encoded = await encoder.tokenizer.encodeBatch(texts);
  const rows = await encode(
    encoder,
    encoded.map((text) => encoder.tokenizer.format.single(text)),
  );
  const expected = new Map(cases.embeddings.map(({ text, embedding }) => [text, embedding]));
  const embeddings = texts.map((text, index) => {
    const row = rows.subarray(index * dimension, (index + 1) * dimension);
    const reference = expected.get(text);
    return { row, error: reference ? largestDifference(row, reference) : 0 };
  });
  const [query, ...documents] = embeddings;
  return documents.map(({ row, error }, document) => {
    const score = 2 * cosineRelevance(query!.row, row) - 1;
    const scoreError = Math.abs(score - cases.cosine[document]!);
    return { document, score, largest_error: Math.max(scoreError, error, query!.error) };
  });
}

/** The rows of the sequences, which are run together, [sequences, dimension]. */
async function encode(
  { runner, manifest }: EncoderUnderTest,
  sequences: readonly FormattedSequence[],
): Promise<Float32Array> {
  const engine = new EncoderEngine(runner, {
    contextLength: manifest.contextLength,
    maxBatchTokens: manifest.contextLength * 8,
  });
  engine.encode({ id: 'check', sequences, priority: 'interactive' });
  while (engine.busy) {
    for (const event of await engine.step()) {
      if (event.type === 'failed') throw new Error(event.reason);
      if (event.type === 'encoded') return event.rows;
    }
  }
  throw new Error('The encoder ended without rows. This is a bug.');
}
