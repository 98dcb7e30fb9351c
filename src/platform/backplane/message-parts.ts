/** NOTIFY takes less than 8,000 bytes; the rest is for the header. */
const partBytes = 7_900;

/**
 * Cuts a message into parts that fit a NOTIFY, never within a character. Each begins with a header,
 * `<publisher>.<sequence>.<index>.<count>:`, also because Postgres drops a payload that equals another of the
 * same transaction.
 */
export function splitMessage(message: string, publisher: string, sequence: number): string[] {
  const pieces = cut(message);
  return pieces.map((piece, index) => `${publisher}.${sequence}.${index}.${pieces.length}:${piece}`);
}

function cut(message: string): string[] {
  // A UTF-16 unit is at most three bytes.
  if (message.length * 3 <= partBytes) return [message];
  const bytes = Buffer.from(message);
  const pieces: string[] = [];
  for (let start = 0; start < bytes.length; ) {
    let end = Math.min(start + partBytes, bytes.length);
    // Bytes of the form 10xxxxxx continue a character.
    while (end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
    pieces.push(bytes.toString('utf8', start, end));
    start = end;
  }
  return pieces;
}

/** Puts parts together again. The parts of one publisher arrive in order; those of several may be mixed. */
export class MessageAssembler {
  readonly #unfinished = new Map<string, { sequence: string; pieces: string[] }>();

  /** @returns The message that this part completes. A message with a part missing never comes. */
  accept(part: string): string | undefined {
    const colon = part.indexOf(':');
    const [publisher, sequence, index, count] = part.slice(0, colon).split('.');
    const piece = part.slice(colon + 1);
    if (publisher === undefined || sequence === undefined) return undefined;
    if (count === '1') return piece;
    if (index === '0') {
      this.#unfinished.set(publisher, { sequence, pieces: [piece] });
      return undefined;
    }
    const message = this.#unfinished.get(publisher);
    if (message?.sequence !== sequence || message.pieces.length !== Number(index)) {
      this.#unfinished.delete(publisher);
      return undefined;
    }
    message.pieces.push(piece);
    if (message.pieces.length < Number(count)) return undefined;
    this.#unfinished.delete(publisher);
    return message.pieces.join('');
  }

  /** Forgets what is unfinished: its other parts were lost with the connection. */
  clear(): void {
    this.#unfinished.clear();
  }
}
