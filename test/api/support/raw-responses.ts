export interface RawResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The pieces that the server wrote, where it wrote chunks; else one. */
  readonly chunks: readonly Buffer[];
  readonly body: string;
}

/** The final responses in what a connection brought, one behind the other; interim ones are left out. */
export function parseResponses(bytes: Buffer): RawResponse[] {
  const responses: RawResponse[] = [];
  let rest = bytes;
  while (rest.length > 0) {
    const end = rest.indexOf('\r\n\r\n');
    if (end === -1) throw new Error(`not a response: ${rest.toString().slice(0, 200)}`);
    const [statusLine, ...lines] = rest.toString('latin1', 0, end).split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(statusLine!)![1]);
    rest = rest.subarray(end + 4);
    if (status < 200) continue;
    const headers = Object.fromEntries(
      lines.map((line) => [
        line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 1).trim(),
      ]),
    );
    const { chunks, length } =
      headers['transfer-encoding'] === 'chunked' ? chunksOf(rest) : wholeOf(rest, headers['content-length']);
    responses.push({ status, headers, chunks, body: Buffer.concat(chunks).toString() });
    rest = rest.subarray(length);
  }
  return responses;
}

function wholeOf(bytes: Buffer, contentLength = '0') {
  const length = Number(contentLength);
  return { chunks: [bytes.subarray(0, length)], length };
}

function chunksOf(bytes: Buffer) {
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const lineEnd = bytes.indexOf('\r\n', at);
    const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16);
    const start = lineEnd + 2;
    at = start + size + 2;
    if (size === 0) return { chunks, length: at };
    chunks.push(bytes.subarray(start, start + size));
  }
  // The connection was cut off in the middle.
  return { chunks, length: bytes.length };
}

/** The data of the events of a stream. */
export function dataOf(body: string): string[] {
  return body
    .split('\n\n')
    .filter((event) => event.startsWith('data: '))
    .map((event) => event.slice('data: '.length));
}

/** The text that a stream's chunks add up to. */
export function textOf(body: string): string {
  return dataOf(body)
    .filter((data) => data !== '[DONE]')
    .map((data) => JSON.parse(data).choices?.[0]?.delta.content ?? '')
    .join('');
}
