import { type FileHandle, open } from 'node:fs/promises';

/** Where a tensor's bytes stand in the weights file. */
export interface Extent {
  readonly offset: number;
  readonly length: number;
}

/** A page: ONNX Runtime maps each tensor from the file rather than reading it, and kernels want aligned rows. */
const alignment = 4096;

/**
 * The external data file of a graph, written from start to end. Nothing is kept in memory, and it may pass the 2 GB
 * at which a protobuf file ends.
 */
export class ExternalData {
  readonly #path: string;
  readonly #file: FileHandle;
  #end = 0;

  private constructor(path: string, file: FileHandle) {
    this.#path = path;
    this.#file = file;
  }

  /** Creates the file at `path`, or empties it. */
  static async create(path: string): Promise<ExternalData> {
    return new ExternalData(path, await open(path, 'w'));
  }

  /** Appends `bytes` at the next page. @throws Error naming the file when they do not fit on the disk. */
  async append(bytes: Uint8Array): Promise<Extent> {
    const offset = Math.ceil(this.#end / alignment) * alignment;
    for (let written = 0; written < bytes.length; ) {
      const length = Math.min(bytes.length - written, maxWrite);
      const { bytesWritten } = await this.#file
        .write(bytes, written, length, offset + written)
        .catch((error: Error) => {
          throw new Error(`${this.#path}: ${error.message}, after ${offset + written} bytes`, {
            cause: error,
          });
        });
      written += bytesWritten;
    }
    this.#end = offset + bytes.length;
    return { offset, length: bytes.length };
  }

  /** Waits until the bytes are on the disk, and closes the file. */
  async close(): Promise<void> {
    try {
      await this.#file.sync();
    } finally {
      await this.#file.close();
    }
  }
}

/** One write call takes at most 2 GB on Linux; smaller pieces cost nothing. */
const maxWrite = 2 ** 28;
