import { CheckpointError } from '../checkpoint.js';
import { bfloat16ToFloat32, float16ToFloat32 } from '../float16.js';
import { WeightFile } from '../weight-file.js';

/** Bytes of a number of each type of the format; tensors of types other than the readable ones may be present. */
const numberBytes: Readonly<Record<string, number>> = {
  F64: 8,
  I64: 8,
  U64: 8,
  F32: 4,
  I32: 4,
  U32: 4,
  F16: 2,
  BF16: 2,
  I16: 2,
  U16: 2,
  F8_E4M3: 1,
  F8_E5M2: 1,
  I8: 1,
  U8: 1,
  BOOL: 1,
};

/** The format's own limit on its header. */
const maxHeaderBytes = 100_000_000;

interface StoredTensor {
  readonly type: string;
  readonly shape: readonly number[];
  /** From the start of the file. */
  readonly offset: number;
  readonly bytes: number;
}

/**
 * A .safetensors file: eight bytes with the header's length, a JSON header, then the tensors' bytes with no gaps
 * (https://github.com/huggingface/safetensors, "Format").
 */
export class SafetensorsFile {
  readonly #file: WeightFile;
  readonly #tensors: ReadonlyMap<string, StoredTensor>;

  private constructor(file: WeightFile, tensors: ReadonlyMap<string, StoredTensor>) {
    this.#file = file;
    this.#tensors = tensors;
  }

  /** @throws CheckpointError when the file cannot be opened, is cut short, or its header is not valid. */
  static async open(path: string): Promise<SafetensorsFile> {
    const file = await WeightFile.open(path);
    try {
      return new SafetensorsFile(file, await readHeader(file));
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  get path(): string {
    return this.#file.path;
  }

  get names(): readonly string[] {
    return [...this.#tensors.keys()];
  }

  /** Dimensions, outermost first. @throws CheckpointError when there is no such tensor. */
  shape(name: string): readonly number[] {
    return this.#tensor(name).shape;
  }

  /**
   * Row-major values, widened to float32.
   * @throws CheckpointError when there is no such tensor or it is not F32, F16 or BF16.
   */
  async read(name: string): Promise<Float32Array> {
    const { type, offset, bytes } = this.#tensor(name);
    switch (type) {
      case 'F32':
        return new Float32Array((await this.#file.read(offset, bytes)).buffer);
      case 'F16':
        return float16ToFloat32(await this.#file.read(offset, bytes));
      case 'BF16':
        return bfloat16ToFloat32(await this.#file.read(offset, bytes));
      default:
        throw new CheckpointError(
          `${this.path}: tensor ${name} is of type ${type}; supported are F32, F16 and BF16`,
        );
    }
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  #tensor(name: string): StoredTensor {
    const tensor = this.#tensors.get(name);
    if (!tensor) {
      throw new CheckpointError(`${this.path}: tensor ${name} is missing`);
    }
    return tensor;
  }
}

async function readHeader(file: WeightFile): Promise<Map<string, StoredTensor>> {
  const start = await file.read(0, 8);
  const length = Number(new DataView(start.buffer).getBigUint64(0, true));
  if (length > maxHeaderBytes) {
    throw new CheckpointError(`${file.path}: not a safetensors file: its header would be ${length} bytes`);
  }
  const text = new TextDecoder().decode(await file.read(8, length));
  let header: unknown;
  try {
    header = JSON.parse(text);
  } catch (error) {
    throw new CheckpointError(`${file.path}: header is not JSON: ${(error as Error).message}`);
  }
  if (typeof header !== 'object' || header === null || Array.isArray(header)) {
    throw new CheckpointError(`${file.path}: header is not a JSON object`);
  }
  const tensors = new Map<string, StoredTensor>();
  for (const [name, entry] of Object.entries(header)) {
    if (name !== '__metadata__') {
      tensors.set(name, parseTensor(file.path, name, entry, 8 + length));
    }
  }
  checkLayout(file, tensors, 8 + length);
  return tensors;
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

function parseTensor(path: string, name: string, entry: unknown, dataStart: number): StoredTensor {
  const { dtype, shape, data_offsets: offsets } = Object(entry) as Record<string, unknown>;
  const broken = (what: string) => new CheckpointError(`${path}: tensor ${name}: ${what}`);
  if (typeof dtype !== 'string') {
    throw broken('has no dtype');
  }
  if (!Array.isArray(shape) || !shape.every(isCount)) {
    throw broken('shape is not a list of sizes');
  }
  if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(isCount)) {
    throw broken('data_offsets are not two byte positions');
  }
  const [begin, end] = offsets as [number, number];
  if (end < begin) {
    throw broken(`ends at byte ${end}, before it begins at ${begin}`);
  }
  const size = numberBytes[dtype];
  const expected = size === undefined ? undefined : shape.reduce((product, length) => product * length, size);
  if (expected !== undefined && expected !== end - begin) {
    throw broken(`${dtype} [${shape}] is ${expected} bytes, but ${end - begin} are given`);
  }
  return { type: dtype, shape, offset: dataStart + begin, bytes: end - begin };
}

/** The tensors must cover the rest of the file exactly once. */
function checkLayout(file: WeightFile, tensors: ReadonlyMap<string, StoredTensor>, dataStart: number): void {
  const inOrder = [...tensors].sort(([, a], [, b]) => a.offset - b.offset || a.bytes - b.bytes);
  let position = dataStart;
  for (const [name, { offset, bytes }] of inOrder) {
    if (offset !== position) {
      const what = offset < position ? 'overlaps the tensor before it' : 'leaves a gap before it';
      throw new CheckpointError(`${file.path}: tensor ${name} ${what}`);
    }
    position += bytes;
  }
  if (position > file.size) {
    throw new CheckpointError(`${file.path}: cut short: ${file.size} bytes of ${position}`);
  }
  if (position < file.size) {
    throw new CheckpointError(`${file.path}: ${file.size - position} bytes follow the last tensor`);
  }
}
