import { Random } from './random.js';
import type { Sampling } from './request.js';
import { indexOfLargest, indicesOfLargest, massCutoff } from './selection.js';

/** Arrays that every sampler of one engine works in, one at a time. */
export class SamplerScratch {
  /** Tokens that are still in the draw, in the order of their ids, and their weights. */
  readonly tokens: Int32Array;
  readonly weights: Float64Array;
  readonly reordered: Float64Array;
  /** Logits, those of forbidden tokens at minus infinity; or those of some tokens, and anything for the others. */
  readonly permitted: Float32Array;

  constructor(vocabularySize: number) {
    this.tokens = new Int32Array(vocabularySize);
    this.weights = new Float64Array(vocabularySize);
    this.reordered = new Float64Array(vocabularySize);
    this.permitted = new Float32Array(vocabularySize);
  }
}

/**
 * Draws the tokens of one choice. Order: logit bias, penalties on what this choice has drawn, temperature, top-k,
 * top-p and min-p (Holtzman et al. 2020; Nguyen et al. 2024), draw. Tokens that a grammar forbids are out from the
 * beginning.
 *
 * The draw walks the survivors in the order of their ids, not of their weights: rounding that differs between
 * batches then moves a boundary by a hair and never swaps two tokens.
 */
export class Sampler {
  readonly #sampling: Sampling;
  readonly #random: Random;
  readonly #scratch: SamplerScratch;
  readonly #drawn = new Map<number, number>();
  /** Logits changed for this draw and what they were; the latest last. */
  readonly #changed: Array<readonly [token: number, logit: number]> = [];

  constructor(sampling: Sampling, choice: number, scratch: SamplerScratch) {
    this.#sampling = sampling;
    this.#random = new Random(sampling.seed, choice);
    this.#scratch = scratch;
  }

  /**
   * The next token by `logits` [vocabulary], which are as they were when it returns. `allowed` has one bit per token,
   * lowest first, of which at least one is set.
   */
  sample(logits: Float32Array, allowed?: Int32Array): number {
    return this.#sample(allowed === undefined ? logits : this.#permit(logits, allowed));
  }

  /**
   * How many of the largest logits decide a draw, the next one or one that follows within `more`: no other token can come
   * to be among those drawn from. Infinity when only all decide.
   */
  neededLogits(more = 0): number {
    const { temperature, topK, logitBias, frequencyPenalty, presencePenalty } = this.#sampling;
    const needed = temperature === 0 ? 1 : topK;
    const onlyLowers =
      frequencyPenalty >= 0 && presencePenalty >= 0 && logitBias.every(([, bias]) => bias <= 0);
    const hasPenalties = frequencyPenalty !== 0 || presencePenalty !== 0;
    const lowered = logitBias.length + (hasPenalties ? this.#drawn.size + more : 0);
    return needed >= 1 && onlyLowers ? needed + lowered : Number.POSITIVE_INFINITY;
  }

  /** The next token by the largest logits, which `neededLogits` says are enough: the one that all would give. */
  sampleTop(tokens: Int32Array, logits: Float32Array): number {
    const { temperature, topK } = this.#sampling;
    const { permitted: sparse, tokens: candidates } = this.#scratch;
    for (let place = 0; place < tokens.length; place++) sparse[tokens[place]!] = logits[place]!;
    const known = this.#changes().filter(([token]) => tokens.includes(token));
    for (const [token, change] of known) sparse[token] = sparse[token]! + change;
    // Changes are rare, and without them the order is that of the logits.
    const order = known.length === 0 ? tokens : tokens.toSorted((a, b) => sparse[b]! - sparse[a]! || a - b);
    if (temperature === 0) return this.#note(order[0]!);
    const count = Math.min(topK, order.length);
    candidates.set(order.subarray(0, count));
    candidates.subarray(0, count).sort();
    return this.#note(this.#draw(sparse, count));
  }

  #permit(logits: Float32Array, allowed: Int32Array): Float32Array {
    const { permitted } = this.#scratch;
    for (let token = 0; token < logits.length; token++) {
      const isAllowed = (allowed[token >> 5]! >>> (token & 31)) & 1;
      permitted[token] = isAllowed ? logits[token]! : Number.NEGATIVE_INFINITY;
    }
    return permitted;
  }

  #sample(logits: Float32Array): number {
    for (const [token, change] of this.#changes()) this.#add(logits, token, change);
    const token =
      this.#sampling.temperature === 0
        ? indexOfLargest(logits)
        : this.#draw(logits, this.#candidates(logits));
    while (this.#changed.length > 0) {
      const [changed, logit] = this.#changed.pop()!;
      logits[changed] = logit;
    }
    return this.#note(token);
  }

  /** What is added to logits before the draw, in this order. */
  #changes(): Array<readonly [token: number, change: number]> {
    const { logitBias, frequencyPenalty, presencePenalty } = this.#sampling;
    if (frequencyPenalty === 0 && presencePenalty === 0) return [...logitBias];
    const penalties = [...this.#drawn].map(
      ([token, count]) => [token, -(count * frequencyPenalty + presencePenalty)] as const,
    );
    return [...logitBias, ...penalties];
  }

  #note(token: number): number {
    this.#drawn.set(token, (this.#drawn.get(token) ?? 0) + 1);
    return token;
  }

  #add(logits: Float32Array, token: number, change: number): void {
    if (token >= logits.length) return;
    this.#changed.push([token, logits[token]!]);
    logits[token] = logits[token]! + change;
  }

  /** Writes the tokens that top-k leaves to the scratch; returns how many. */
  #candidates(logits: Float32Array): number {
    const { topK } = this.#sampling;
    const { tokens } = this.#scratch;
    if (topK < 1 || topK >= logits.length) {
      for (let token = 0; token < logits.length; token++) tokens[token] = token;
      return logits.length;
    }
    indicesOfLargest(logits, topK, tokens);
    return topK;
  }

  #draw(logits: Float32Array, candidates: number): number {
    const { temperature, topP, minP } = this.#sampling;
    const { tokens, weights } = this.#scratch;
    let largest = Number.NEGATIVE_INFINITY;
    for (let index = 0; index < candidates; index++) {
      largest = Math.max(largest, logits[tokens[index]!]!);
    }
    let total = 0;
    for (let index = 0; index < candidates; index++) {
      const weight = Math.exp((logits[tokens[index]!]! - largest) / temperature);
      weights[index] = weight;
      total += weight;
    }
    if (topP === 1 && minP === 0) return this.#pick(candidates, total);

    const { threshold, ties } =
      topP === 1 ? { threshold: 0, ties: candidates } : this.#nucleus(candidates, total);
    let tiesLeft = ties;
    let count = 0;
    total = 0;
    for (let index = 0; index < candidates; index++) {
      const weight = weights[index]!;
      const inNucleus = weight > threshold || (weight === threshold && tiesLeft-- > 0);
      if (!inNucleus || weight < minP) continue;
      tokens[count] = tokens[index]!;
      weights[count++] = weight;
      total += weight;
    }
    return this.#pick(count, total);
  }

  /** The cutoff of top-p. Weights that even all together do not reach what it leaves out are not in the nucleus. */
  #nucleus(candidates: number, total: number) {
    const { topP } = this.#sampling;
    const { weights, reordered } = this.#scratch;
    const floor = ((1 - topP) * total) / (2 * candidates);
    let count = 0;
    for (let index = 0; index < candidates; index++) {
      const weight = weights[index]!;
      if (weight >= floor) reordered[count++] = weight;
    }
    return massCutoff(reordered.subarray(0, count), topP * total);
  }

  #pick(count: number, total: number): number {
    const { tokens, weights } = this.#scratch;
    let left = this.#random.next() * total;
    for (let index = 0; index < count; index++) {
      left -= weights[index]!;
      if (left < 0) return tokens[index]!;
    }
    // Rounding used up the total: the last token that can be drawn at all.
    let last = count - 1;
    while (last > 0 && weights[last] === 0) last--;
    return tokens[last]!;
  }
}
