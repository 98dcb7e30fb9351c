import { describe, expect, it } from 'vitest';
import { readEvents } from '../../../src/cli/client/server-sent-events.js';

async function events(text: string, chunkBytes = Number.POSITIVE_INFINITY): Promise<string[]> {
  const bytes = new TextEncoder().encode(text);
  async function* chunks() {
    for (let start = 0; start < bytes.length; start += chunkBytes) {
      yield bytes.subarray(start, start + chunkBytes);
    }
  }
  const found = [];
  for await (const data of readEvents(chunks())) found.push(data);
  return found;
}

describe('readEvents', () => {
  it('gives the data of each event', async () => {
    expect(await events('data: one\n\ndata: two\n\n')).toEqual(['one', 'two']);
  });

  it.each(['\n', '\r\n', '\r'])(
    'gives the same events wherever chunks are split, lines ending in %j',
    async (end) => {
      const text = ['data: {"grüß":"水"}', '', ': keep-alive', '', 'data: [DONE]', '', ''].join(end);
      for (const chunkBytes of [1, 2, 3, 5, 7]) {
        expect(await events(`${text}x`, chunkBytes)).toEqual(['{"grüß":"水"}', '[DONE]']);
      }
    },
  );

  it('joins the data lines of one event with line breaks', async () => {
    expect(await events('data: one\ndata:two\ndata\n\n')).toEqual(['one\ntwo\n']);
  });

  it('takes one space after the colon away and no more', async () => {
    expect(await events('data:  indented \n\n')).toEqual([' indented ']);
  });

  it('skips comments and other fields', async () => {
    expect(await events(': hello\n\nevent: delta\nid: 7\ndata: one\n\nretry: 10\n\n')).toEqual(['one']);
  });

  it('drops an event that the stream ends in the middle of', async () => {
    expect(await events('data: one\n\ndata: tw')).toEqual(['one']);
  });
});
