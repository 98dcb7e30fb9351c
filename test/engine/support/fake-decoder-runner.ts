import type {
  DecoderBatch,
  DecoderOutput,
  DecoderRunner,
  DecoderShape,
} from '../../../src/engine/decoder-runner.js';

export const fakeShape: DecoderShape = {
  layers: 2,
  heads: 4,
  kvHeads: 2,
  headSize: 3,
  vocabularySize: 64,
  kvFormat: 'float32',
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
export function fakeGreedy(prompt: ArrayLike<number>, count: number): number[] {
  const history = Array.from(prompt);
  const drawn: number[] = [];
  for (let step = 0; step < count; step++) {
    const logits = fakeLogits(history);
    const token = logits.indexOf(Math.max(...logits));
    history.push(token);
    drawn.push(token);
  }
  return drawn;
}

/**
 * A decoder whose keys and values say which token stands at which position, and whose logits are a function of the
 * history that a row sees through its mask and the cache. It throws when that history has gaps, repetitions, or
 * differs between layers, heads or members of a group: a wrong mask, position or row shows at once.
 */
export class FakeDecoderRunner implements DecoderRunner {
  readonly shape = fakeShape;
  readonly runs: Array<Pick<DecoderBatch, 'rows' | 'width' | 'capacity'>> = [];
  /** Called before each run; may throw, or change what the run gives. */
  onRun: (batch: DecoderBatch) => void | Promise<void> = () => {};
  onOutput: (output: DecoderOutput) => void = () => {};

  async run(batch: DecoderBatch): Promise<DecoderOutput> {
    this.runs.push({ rows: batch.rows, width: batch.width, capacity: batch.capacity });
    await this.onRun(batch);
    const { layers, kvHeads, headSize, vocabularySize } = this.shape;
    const logits = new Float32Array(batch.rows * vocabularySize);
    for (let row = 0; row < batch.rows; row++) {
      logits.set(fakeLogits(this.#history(batch, row)), row * vocabularySize);
    }
    const fresh = (layer: number, sign: number) => {
      const array = new Float32Array(batch.rows * kvHeads * batch.width * headSize);
      for (let row = 0; row < batch.rows; row++) {
        for (let head = 0; head < kvHeads; head++) {
          for (let column = 0; column < batch.width; column++) {
            const at = ((row * kvHeads + head) * batch.width + column) * headSize;
            array[at] = sign * Number(batch.inputIds[row * batch.width + column]);
            array[at + 1] = Number(batch.positionIds[row * batch.width + column]);
            array[at + 2] = layer * kvHeads + head;
          }
        }
      }
      return array;
    };
    const keys = Array.from({ length: layers }, (_, layer) => fresh(layer, 1));
    const values = Array.from({ length: layers }, (_, layer) => fresh(layer, -1));
    const output = { logits, keys, values };
    this.onOutput(output);
    return output;
  }

  async close(): Promise<void> {}

  #history(batch: DecoderBatch, row: number): number[] {
    const { layers, heads, kvHeads } = this.shape;
    const views: string[] = [];
    for (let layer = 0; layer < layers; layer++) {
      for (let head = 0; head < heads; head++) {
        const kvHead = Math.floor(head / (heads / kvHeads));
        views.push(this.#seen(batch, row, layer, kvHead, head % (heads / kvHeads)).join());
      }
    }
    if (new Set(views).size !== 1) throw new Error(`row ${row}: heads or layers see different histories`);
    return views[0]!.split(',').map(Number);
  }

  /** The tokens that the last query of a row sees, in the order of their positions. */
  #seen(batch: DecoderBatch, row: number, layer: number, kvHead: number, member: number): number[] {
    const { kvHeads, headSize, heads } = this.shape;
    const { width, capacity, mask } = batch;
    const query = Number(batch.last[row]);
    const columns = capacity + width;
    const line = ((row * (heads / kvHeads) + member) * width + query) * columns;
    const seen = new Map<number, number>();
    const see = (token: number, position: number) => {
      if (seen.has(position)) throw new Error(`row ${row}: position ${position} is seen twice`);
      seen.set(position, token);
    };
    for (let column = 0; column < capacity; column++) {
      if (mask[line + width + column] !== 0) continue;
      const at = ((row * kvHeads + kvHead) * capacity + column) * headSize;
      const [key, value] = batch.past[layer]!.map(({ data }) => data.subarray(at, at + headSize)) as [
        Float32Array,
        Float32Array,
      ];
      if (key[0] !== -value[0]! || key[1] !== value[1] || key[2] !== value[2]) {
        throw new Error(`row ${row}: key and value at ${column} are of different tokens`);
      }
      if (key[2] !== layer * kvHeads + kvHead) throw new Error(`row ${row}: key of another layer or head`);
      if (key[1] !== column) throw new Error(`row ${row}: cache column ${column} holds position ${key[1]}`);
      see(key[0]!, key[1]!);
    }
    for (let column = 0; column < width; column++) {
      if (mask[line + column] !== 0) continue;
      see(Number(batch.inputIds[row * width + column]), Number(batch.positionIds[row * width + column]));
    }
    return Array.from({ length: seen.size }, (_, position) => {
      const token = seen.get(position);
      if (token === undefined) throw new Error(`row ${row}: position ${position} of ${seen.size} is missing`);
      return token;
    });
  }
}
