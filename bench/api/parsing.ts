import { once } from 'node:events';
import { start } from './servers.js';

/** Milliseconds that a request with 128 tools takes to parse: the first of a process, and one of many. */
export interface Parsing {
  /** What an API process does before. */
  readonly warmUpMs: number;
  readonly firstMs: number;
  readonly medianMs: number;
}

/** Measures it in a process that does what an API process does before its first request, and nothing else. */
export async function measureParsing(): Promise<Parsing> {
  const child = await start('parsing-process.js', { environment: {} });
  const answer = once(child, 'message');
  child.send('go');
  const [parsing] = (await answer) as [Parsing];
  child.disconnect();
  return parsing;
}
