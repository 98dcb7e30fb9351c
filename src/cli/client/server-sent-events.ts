/**
 * The data of each event of a `text/event-stream`, as it arrives. Chunks may be split anywhere, inside a character
 * too. Comments and fields other than `data` are skipped; an event the stream ends in the middle of is dropped, as
 * the specification asks (HTML Living Standard, 9.2.6 "Interpreting an event stream").
 */
export async function* readEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  let data: string[] = [];
  for await (const chunk of chunks) {
    rest += decoder.decode(chunk, { stream: true });
    // A carriage return at the very end may be the first half of a line break.
    const complete = rest.endsWith('\r') ? rest.slice(0, -1) : rest;
    const lines = complete.split(/\r\n|\r|\n/);
    rest = lines.pop()! + rest.slice(complete.length);
    for (const line of lines) {
      if (line === '') {
        if (data.length > 0) yield data.join('\n');
        data = [];
      } else if (line === 'data' || line.startsWith('data:')) {
        data.push(line.slice(5).replace(/^ /, ''));
      }
    }
  }
}
