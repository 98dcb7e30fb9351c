export interface ChunkOptions {
  /** Tokens of a chunk at most. */
  readonly size: number;
  /** Tokens that a chunk shares with the one before; less than `size` where there is more than one chunk. */
  readonly overlap: number;
  /** Chunks at most, from the start. */
  readonly max: number;
}

/** Cuts a document's tokens into chunks. An empty document is one empty chunk. The chunks are views, not copies. */
export function* chunks(tokens: Int32Array, { size, overlap, max }: ChunkOptions): Generator<Int32Array> {
  for (let start = 0, count = 0; count < max; start += size - overlap, count++) {
    yield tokens.subarray(start, start + size);
    if (start + size >= tokens.length) return;
  }
}

/** How many of a document's tokens its chunks can hold: those that come after are never looked at. */
export function tokensOfChunks({ size, overlap, max }: ChunkOptions): number {
  return size + (max - 1) * Math.max(1, size - overlap);
}
