import { type FileHandle, open } from 'node:fs/promises';
import { CheckpointError } from './checkpoint.js';

/** Reads longer than 2 GiB fail in Node.js; large tensors are read in pieces of this many bytes. */
const maxReadBytes = 256 * 1024 * 1024;

/** A file of weights, read by position so that no more than one tensor of it is in memory. */
export class WeightFile {
  readonly path: string;
  /** In bytes. */
  readonly size: number;
  readonly #handle: FileHandle;

  private constructor(path: string, size: number, handle: FileHandle) {
    this.path = path;
    this.size = size;
    this.#handle = handle;
  }

  /** @throws CheckpointError when the file cannot be opened. */
  static async open(path: string): Promise<WeightFile> {
    let handle: FileHandle;
    try {
      handle = await open(path, 'r');
    } catch (error) {
      throw new CheckpointError(`${path}: ${(error as Error).message}`, { cause: error });
    }
    const stat = await handle.stat();
    if (!stat.isFile()) {
      await handle.close();
      throw new CheckpointError(`${path}: not a file`);
    }
    return new WeightFile(path, stat.size, handle);
  }

  /**
   * `length` bytes from `offset`, in a buffer of their own, so that any typed array may lie over them.
   * @throws CheckpointError when the file ends before.
   */
  async read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    if (offset + length > this.size) {
      throw new CheckpointError(
        `${this.path}: cut short: bytes ${offset} to ${offset + length} are wanted of ${this.size}`,
      );
    }
    const bytes = new Uint8Array(length);
    for (let done = 0; done < length; ) {
      const { bytesRead } = await this.#handle.read(
        bytes,
        done,
        Math.min(maxReadBytes, length - done),
        offset + done,
      );
      if (bytesRead === 0) {
        throw new CheckpointError(`${this.path}: cut short at byte ${offset + done} while it was read`);
      }
      done += bytesRead;
    }
    return bytes;
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }
}
