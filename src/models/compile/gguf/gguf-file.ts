import { resolve } from 'node:path';
import { type GGUFParseOutput, gguf } from '@huggingface/gguf';
import { CheckpointError } from '../checkpoint.js';
import { WeightFile } from '../weight-file.js';
import { GgufMetadata } from './gguf-metadata.js';
import { formatName, type TensorFormat, tensorFormats } from './tensor-formats.js';

interface StoredTensor {
  /** Dimensions, outermost first; the file has them the other way round. */
  readonly shape: readonly number[];
  readonly format: TensorFormat;
  /** From the start of the file. */
  readonly offset: number;
  readonly bytes: number;
}

/** A .gguf file (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md): metadata and tensors by their names. */
export class GgufFile {
  readonly metadata: GgufMetadata;
  readonly #file: WeightFile;
  readonly #tensors: ReadonlyMap<string, StoredTensor>;

  private constructor(file: WeightFile, metadata: GgufMetadata, tensors: ReadonlyMap<string, StoredTensor>) {
    this.#file = file;
    this.metadata = metadata;
    this.#tensors = tensors;
  }

  /**
   * @throws CheckpointError when the file cannot be opened, is broken or cut short, is one part of several, or
   * holds a tensor in a format that is not read.
   */
  static async open(path: string): Promise<GgufFile> {
    const file = await WeightFile.open(path);
    try {
      const header = await readHeader(file);
      const metadata = new GgufMetadata(path, header.metadata);
      if ((metadata.number('split.count') ?? 1) > 1) {
        throw new CheckpointError(`${path}: one part of a split model; merge its parts into one file`);
      }
      return new GgufFile(file, metadata, readTensors(file, header, metadata));
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  get path(): string {
    return this.#file.path;
  }

  has(name: string): boolean {
    return this.#tensors.has(name);
  }

  /** Dimensions, outermost first. @throws CheckpointError when there is no such tensor. */
  shape(name: string): readonly number[] {
    return this.#tensor(name).shape;
  }

  /** Row-major values, dequantized to float32. @throws CheckpointError when there is no such tensor. */
  async read(name: string): Promise<Float32Array> {
    const { format, offset, bytes } = this.#tensor(name);
    return format.toFloat32(await this.#file.read(offset, bytes));
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

async function readHeader(file: WeightFile): Promise<GGUFParseOutput<{ strict: false }>> {
  let header: GGUFParseOutput<{ strict: false }>;
  try {
    // An absolute path, lest one that begins like a URL be taken for one.
    header = await gguf(resolve(file.path), { allowLocalFile: true });
  } catch (error) {
    const reason =
      error instanceof RangeError ? 'its header is cut short or broken' : (error as Error).message;
    throw new CheckpointError(`${file.path}: ${reason}`, { cause: error });
  }
  // The parser reads zeros past the end of a file; a header that lies within it was wholly read.
  if (header.tensorInfoByteRange[1] > file.size) {
    throw new CheckpointError(`${file.path}: its header is cut short or broken`);
  }
  if (!header.littleEndian) {
    throw new CheckpointError(`${file.path}: big-endian files are not supported`);
  }
  return header;
}

function readTensors(
  file: WeightFile,
  header: GGUFParseOutput<{ strict: false }>,
  metadata: GgufMetadata,
): Map<string, StoredTensor> {
  const alignment = metadata.number('general.alignment') ?? 32;
  const tensors = new Map<string, StoredTensor>();
  for (const { name, dtype, shape: reversed, offset: relative } of header.tensorInfos) {
    const broken = (what: string) => new CheckpointError(`${file.path}: tensor ${name} ${what}`);
    const format = tensorFormats.get(dtype);
    if (!format) {
      const supported = [...tensorFormats.keys()].map(formatName).join(', ');
      throw broken(`is stored as ${formatName(dtype)}; supported are ${supported}`);
    }
    const shape = reversed.map(Number).reverse();
    if ((shape.at(-1) ?? 1) % format.blockWeights !== 0) {
      throw broken(`[${shape}] does not divide into the blocks of ${formatName(dtype)}`);
    }
    const weights = shape.reduce((product, length) => product * length, 1);
    const bytes = (weights / format.blockWeights) * format.blockBytes;
    const offset = Number(header.tensorDataOffset) + Number(relative);
    if (Number(relative) % alignment !== 0) {
      throw broken(`begins at byte ${relative}, which is not a multiple of ${alignment}`);
    }
    if (offset + bytes > file.size) {
      throw broken(`ends at byte ${offset + bytes}, but the file at ${file.size}: it is broken or cut short`);
    }
    if (tensors.has(name)) {
      throw broken('is there twice');
    }
    tensors.set(name, { shape, format, offset, bytes });
  }
  return tensors;
}
