import { addAbortSignal, type Readable, type Writable } from 'node:stream';

/** Where a command reads and writes: the process's own streams, or a test's. */
export interface Terminal {
  readonly stdin: Readable;
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: Writable & { readonly isTTY?: boolean };
}

/** Lays out rows under their headings, for people. */
export type FormatTable = (head: readonly string[], rows: ReadonlyArray<readonly string[]>) => string;

/** Everything that can be read from `stream`, as UTF-8 text without a byte order mark. */
export async function readText(stream: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of stream) text += decoder.decode(chunk, { stream: true });
  return text + decoder.decode();
}

/** The same of a stream that nobody else reads, such as standard input; waiting for more ends with the signal. */
export async function readInput(stream: Readable, signal: AbortSignal): Promise<string> {
  try {
    return await readText(addAbortSignal(signal, stream));
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}

/**
 * Text from elsewhere as a terminal may show it: control characters, which could move the cursor or start an escape
 * sequence, become spaces; line breaks and tabs stay.
 */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, ' ');
}
