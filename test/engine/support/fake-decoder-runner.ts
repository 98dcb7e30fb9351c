import type {
  DecoderBatch,
  DecoderOutput,
  DecoderRunner,
  DecoderShape,
  TopLogits,
  WholeLogits,
} from '../../../src/engine/decoder-runner.js';

export const fakeShape: DecoderShape = {
  layers: 2,
  heads: 4,
  kvHeads: 2,
  headSize: 3,
  vocabularySize: 64,
  kvFormat: 'float32',
  decodeWidth: 16,
};

/** Logits that depend on every token and its place. */
export function fakeLogits(
  history: readonly number[],
  vocabularySize = fakeShape.vocabularySize,
): Float32Array {
  let hash = 17;
  for (const token of history) hash = (Math.imul(hash, 31) + token + 1) | 0;
  return Float32Array.from({ length: vocabularySize }, (_, token) => {
    const mixed = Math.imul(hash ^ Math.imul(token + 1, 0x9e3779b9), 0x85ebca6b);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32 + token / 1e6;
  });
}

/** What greedy decoding of the fake gives, without any engine. */
export function fakeGreedy(
  prompt: ArrayLike<number>,
  count: number,
  memory = Number.POSITIVE_INFINITY,
): number[] {
  const history = Array.from(prompt);
  const drawn: number[] = [];
  for (let step = 0; step < count; step++) {
    const logits = fakeLogits(history.slice(-memory));
    const token = logits.indexOf(Math.max(...logits));
    history.push(token);
    drawn.push(token);
  }
  return drawn;
}

/** The `count` largest logits of each of `rows`, as a graph gives them. */
function topOf(logits: Float32Array, rows: number, count: number): TopLogits {
  if (count > logits.length / rows) throw new Error(`the ${count} largest of ${logits.length / rows}`);
  const top = { count, tokens: new Int32Array(rows * count), logits: new Float32Array(rows * count) };
  for (let row = 0; row < rows; row++) {
    const own = logits.subarray((row * logits.length) / rows, ((row + 1) * logits.length) / rows);
    const tokens = Int32Array.from(own.keys()).sort((a, b) => own[b]! - own[a]! || a - b);
    top.tokens.set(tokens.subarray(0, count), row * count);
    for (let place = 0; place < count; place++) top.logits[row * count + place] = own[tokens[place]!]!;
  }
  return top;
}

/** All logits of the rows at `places`, as a graph gives them. */
function wholeOf(logits: Float32Array, places: BigInt64Array, vocabularySize: number): WholeLogits {
  const rows = Array.from(places, (place) => {
    return logits.subarray(Number(place) * vocabularySize, (Number(place) + 1) * vocabularySize);
  });
  const likeliest = Float32Array.from(rows, (own) => {
    const largest = Math.max(...own);
    return -Math.log(own.reduce((sum, logit) => sum + Math.exp(logit - largest), 0));
  });
  return { places, logits: Float32Array.from(rows.flatMap((own) => [...own])), likeliest };
}

/**
 * A decoder whose keys and values say which token stands at which position, and whose logits are a function of the
 * history that a row sees by its lengths and the cache. It throws when that history has gaps, or differs between
 * layers or heads, when lengths and the cache do not agree, and when rows are run together that a graph takes only
 * apart: a wrong length or row shows at once.
 */
export class FakeDecoderRunner implements DecoderRunner {
  readonly shape = fakeShape;
  readonly runs: Array<Pick<DecoderBatch, 'rows' | 'width'>> = [];
  /** How many tokens of a history the logits depend on: with few, texts come to repeat themselves. */
  memory = Number.POSITIVE_INFINITY;
  /** Called before each run; may throw, or change what the run gives. */
  onRun: (batch: DecoderBatch) => void | Promise<void> = () => {};
  onOutput: (output: DecoderOutput, batch: DecoderBatch) => void = () => {};

  async run(batch: DecoderBatch): Promise<DecoderOutput> {
    this.runs.push({ rows: batch.rows, width: batch.width });
    await this.onRun(batch);
    this.#check(batch);
    this.#write(batch);
    const { vocabularySize } = this.shape;
    const { wanted, top, whole } = batch;
    const logits = new Float32Array(wanted.length * vocabularySize);
    for (const [place, token] of wanted.entries()) {
      const history = this.#history(batch, Number(token)).slice(-this.memory);
      logits.set(fakeLogits(history), place * vocabularySize);
    }
    const output = { top: topOf(logits, wanted.length, top), whole: wholeOf(logits, whole, vocabularySize) };
    this.onOutput(output, batch);
    return output;
  }

  async close(): Promise<void> {}

  /** Puts the new tokens' keys and values, padding's included, behind what the cache has of each row. */
  #write({ rows, width, inputIds, lengths, cache }: DecoderBatch): void {
    const { kvHeads, headSize } = this.shape;
    for (const [layer, { keys, values }] of cache.entries()) {
      const capacity = keys.dims[2]!;
      for (let token = 0; token < rows * width; token++) {
        const row = Math.floor(token / width);
        const position = lengths[row]! + 1 - width + (token % width);
        for (let head = 0; head < kvHeads; head++) {
          const at = ((row * kvHeads + head) * capacity + position) * headSize;
          const place = layer * kvHeads + head;
          keys.data.set([Number(inputIds[token]), position, place], at);
          values.data.set([-Number(inputIds[token]), position, place], at);
        }
      }
    }
  }

  /** Whether the sizes are those of one batch, and the rows may be run together. */
  #check({ rows, width, inputIds, lengths, longest, wanted, cache }: DecoderBatch): void {
    const { layers, kvHeads, headSize } = this.shape;
    const sizes = [inputIds.length, lengths.length, longest.length];
    const expected = [rows * width, rows, 1];
    if (sizes.join() !== expected.join()) throw new Error(`arrays of ${sizes}, not ${expected}`);
    if (wanted.length === 0 || wanted.some((token) => token < 0 || token >= rows * width)) {
      throw new Error(`logits of ${wanted}, of ${rows} x ${width} tokens`);
    }
    if (longest[0] !== Math.max(...lengths) + 1) {
      throw new Error(`the longest of ${lengths} is not ${longest[0]} positions`);
    }
    if (rows > 1 && width > 1 && lengths.some((length) => length !== width - 1)) {
      throw new Error(`${rows} rows of ${width} new tokens, of which some have a past: lengths ${lengths}`);
    }
    if (lengths.some((length) => length + 1 < width))
      throw new Error(`${width} new tokens: lengths ${lengths}`);
    if (cache.length !== layers) throw new Error(`a cache of ${cache.length} layers`);
    const capacity = cache[0]!.keys.dims[2]!;
    if (longest[0]! > capacity) throw new Error(`${longest[0]} positions in a cache of ${capacity}`);
    for (const { data, dims } of cache.flatMap(({ keys, values }) => [keys, values])) {
      const shape = [rows, kvHeads, capacity, headSize];
      if (dims.join() !== shape.join()) throw new Error(`a cache of ${dims}, not ${shape}`);
      if (data.length !== rows * kvHeads * capacity * headSize)
        throw new Error(`${data.length} numbers of ${dims}`);
    }
  }

  #history(batch: DecoderBatch, token: number): number[] {
    const { layers, kvHeads } = this.shape;
    const views: string[] = [];
    for (let layer = 0; layer < layers; layer++) {
      for (let head = 0; head < kvHeads; head++) views.push(this.#seen(batch, token, layer, head).join());
    }
    if (new Set(views).size !== 1) throw new Error(`token ${token}: heads or layers see different histories`);
    return views[0]!.split(',').map(Number);
  }

  /** The tokens that a new token sees, itself included, in the order of their positions. */
  #seen(batch: DecoderBatch, token: number, layer: number, head: number): number[] {
    const row = Math.floor(token / batch.width);
    const { kvHeads, headSize } = this.shape;
    const { keys, values } = batch.cache[layer]!;
    const capacity = keys.dims[2]!;
    const cached = batch.lengths[row]! + 1 - batch.width;
    const seen: number[] = [];
    for (let column = 0; column <= cached + (token % batch.width); column++) {
      const at = ((row * kvHeads + head) * capacity + column) * headSize;
      const key = keys.data.subarray(at, at + headSize);
      const value = values.data.subarray(at, at + headSize);
      if (key[0] !== -value[0]! || key[1] !== value[1] || key[2] !== value[2]) {
        throw new Error(`row ${row}: key and value at ${column} are of different tokens`);
      }
      if (key[2] !== layer * kvHeads + head) throw new Error(`row ${row}: key of another layer or head`);
      if (key[1] !== column) throw new Error(`row ${row}: cache column ${column} holds position ${key[1]}`);
      seen.push(key[0]!);
    }
    return seen;
  }
}
