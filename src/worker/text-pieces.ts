/** What a cut is best made before, the best first. */
const separators = [' ', '\n'];

/**
 * Cuts a long text into pieces that can be tokenized one after the other. A cut falls before a space, else before a
 * line's end, and never between two of them: the pre-tokenizers of encoders begin a new word there, so the pieces'
 * tokens, end to end, are the text's. A piece that has neither ends between two characters, and
 * there a word may become other tokens than in one piece.
 *
 * @param size UTF-16 units of a piece at most; at least 2.
 */
export function* textPieces(text: string, size: number): Generator<string> {
  let start = 0;
  while (text.length - start > size) {
    const end = cutWithin(text, start, start + size);
    yield text.slice(start, end);
    start = end;
  }
  yield text.slice(start);
}

/** The last good place to cut `text` after `start` and no later than `end`. */
function cutWithin(text: string, start: number, end: number): number {
  // Searching the whole text would go back to its beginning for each piece without a separator.
  const piece = text.slice(start, end + 1);
  for (const separator of separators) {
    for (let at = piece.lastIndexOf(separator); at > 0; at = piece.lastIndexOf(separator, at - 1)) {
      if (piece[at - 1] !== separator) return start + at;
    }
  }
  return isTrailSurrogate(text, end) ? end - 1 : end;
}

function isTrailSurrogate(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff;
}
