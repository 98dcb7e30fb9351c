/**
 * Takes the `data` lines out of a `text/event-stream` that arrives in pieces, as cheaply as can be, because the client
 * shares the machine with the server it measures: lines stay in Latin-1, in which every byte is one character, and
 * events are taken to have one data line each, as every server of this API writes them.
 */
export class EventLines {
  #rest = '';

  /** The data of the events whose lines end in `bytes`; {@link readText} gives what was written in UTF-8. */
  push(bytes: Buffer): string[] {
    const text = this.#rest + bytes.toString('latin1');
    const found: string[] = [];
    let begin = 0;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', begin)) {
      if (text.startsWith('data:', begin)) {
        const from = text[begin + 5] === ' ' ? begin + 6 : begin + 5;
        found.push(text.slice(from, text[end - 1] === '\r' ? end - 1 : end));
      }
      begin = end + 1;
    }
    this.#rest = text.slice(begin);
    return found;
  }
}

export function readText(latin1: string): string {
  return Buffer.from(latin1, 'latin1').toString('utf8');
}
