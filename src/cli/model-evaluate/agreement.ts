/** How well a model predicts a text, and how close its predictions are to a reference's. */
export interface Agreement {
  /** Predictions that were compared. */
  readonly tokens: number;
  /** exp of the mean negative log-probability of what comes next. */
  readonly perplexity: number;
  /** Share of predictions whose likeliest token is the reference's, 0..1. */
  readonly top1: number;
  /** Mean Kullback-Leibler divergence of the predictions from the reference's, in nats. */
  readonly divergence: number;
}

/** Log-probabilities of one position. */
export type Prediction = Float64Array;

/** The log-softmax of logits. */
export function predictionOf(logits: Float32Array): Prediction {
  let largest = Number.NEGATIVE_INFINITY;
  for (const logit of logits) if (logit > largest) largest = logit;
  let sum = 0;
  for (const logit of logits) sum += Math.exp(logit - largest);
  const normalizer = largest + Math.log(sum);
  return Float64Array.from(logits, (logit) => logit - normalizer);
}

/** Sums up predictions, one position after the other. */
export class AgreementSum {
  #tokens = 0;
  #surprise = 0;
  #agreeing = 0;
  #divergence = 0;

  add(prediction: Prediction, reference: Prediction, next: number): void {
    this.#tokens++;
    this.#surprise -= prediction[next]!;
    if (likeliest(prediction) === likeliest(reference)) this.#agreeing++;
    if (prediction !== reference) this.#divergence += divergence(reference, prediction);
  }

  result(): Agreement {
    return {
      tokens: this.#tokens,
      perplexity: Math.exp(this.#surprise / this.#tokens),
      top1: this.#agreeing / this.#tokens,
      divergence: this.#divergence / this.#tokens,
    };
  }
}

function likeliest(prediction: Prediction): number {
  let best = 0;
  for (let token = 1; token < prediction.length; token++) {
    if (prediction[token]! > prediction[best]!) best = token;
  }
  return best;
}

/** KL(reference || prediction): the sum of p * (log p - log q). */
function divergence(reference: Prediction, prediction: Prediction): number {
  let sum = 0;
  for (const [token, logarithm] of reference.entries()) {
    sum += Math.exp(logarithm) * (logarithm - prediction[token]!);
  }
  return sum;
}
