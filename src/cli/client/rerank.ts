import { createReadStream } from 'node:fs';
import { type ServiceClient, ServiceClientError } from './service-client.js';
import { type FormatTable, printable, readInput, type Terminal } from './terminal.js';

export interface RerankOptions {
  readonly query: string;
  /** A file with a document on each line, or `-` for standard input. Blank lines are no documents. */
  readonly documents: string;
  readonly topN?: number;
  readonly returnDocuments: boolean;
  /** The first reranker that is online when left out. */
  readonly model?: string;
  /** Print the service's answer as JSON, with `index` counting the lines of the file from 0. */
  readonly json: boolean;
}

interface Line {
  readonly index: number;
  readonly text: string;
}

/** `headrace rerank`: the lines of a file, best answer to the query first. */
export async function rerank(
  options: RerankOptions,
  context: { client: ServiceClient; terminal: Terminal; formatTable: FormatTable; signal: AbortSignal },
): Promise<void> {
  const { client, terminal, formatTable, signal } = context;
  const lines = splitLines(await readDocuments(options.documents, { terminal, signal }));
  if (lines.length === 0) throw new ServiceClientError(`There are no documents in ${options.documents}.`);

  const model = options.model ?? (await client.models('reranker', signal))[0]?.id;
  if (model === undefined) throw new ServiceClientError('The service has no reranker online.');
  const response = await client.rerank(
    {
      model,
      query: options.query,
      documents: lines.map(({ text }) => text),
      top_n: options.topN,
      return_documents: options.returnDocuments,
    },
    signal,
  );

  const results = response.results.map((result) => {
    const line = lines[result.index];
    if (line === undefined) throw new ServiceClientError('The answer names a document that was not sent.');
    return { ...result, line };
  });
  if (options.json) {
    const answer = {
      ...response,
      results: results.map(({ line, ...result }) => ({ ...result, index: line.index })),
    };
    terminal.stdout.write(`${JSON.stringify(answer, null, 2)}\n`);
    return;
  }
  const { isTTY, columns } = terminal.stdout;
  // What rank, score and line take beside it, with the gaps between them.
  const width = isTTY && columns !== undefined ? Math.max(20, columns - 30) : Number.POSITIVE_INFINITY;
  const table = formatTable(
    ['rank', 'score', 'line', 'document'],
    results.map(({ relevance_score, line }, rank) => [
      String(rank + 1),
      relevance_score.toFixed(4),
      String(line.index + 1),
      shorten(printable(line.text).replaceAll('\t', ' '), width),
    ]),
  );
  terminal.stdout.write(`${table}\n`);
}

async function readDocuments(
  source: string,
  { terminal, signal }: { terminal: Terminal; signal: AbortSignal },
): Promise<string> {
  if (source === '-') return await readInput(terminal.stdin, signal);
  try {
    return await readInput(createReadStream(source), signal);
  } catch (error) {
    signal.throwIfAborted();
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = code === 'ENOENT' ? 'there is no such file' : message;
    throw new ServiceClientError(`The documents in ${source} cannot be read: ${reason}.`, { cause: error });
  }
}

function splitLines(text: string): Line[] {
  return text
    .split(/\r?\n/)
    .map((line, index) => ({ index, text: line }))
    .filter((line) => line.text.trim() !== '');
}

function shorten(text: string, width: number): string {
  const characters = [...text];
  return characters.length <= width ? text : `${characters.slice(0, width - 1).join('')}…`;
}
