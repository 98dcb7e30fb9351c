import { isUtf8 } from 'node:buffer';
import type { FastifyInstance } from 'fastify';
import { ServiceError } from '../contract/errors.js';
import { isNestedDeeperThan } from './nesting.js';

/** Far more than a tool's schema needs, and far less than walking over it may take. */
const maxDepth = 256;

const byteOrderMark = '\uFEFF';

/** Bodies are JSON and nothing else; any other content type is refused by Fastify. */
export function acceptJsonOnly(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    try {
      if ((request.headers['content-encoding'] ?? 'identity') !== 'identity') {
        throw new ServiceError('unsupportedMediaType', 'The body must not be compressed.');
      }
      // Many clients name the type of a body with every request, those included that have none.
      const isEmpty = request.method === 'DELETE' && body.length === 0;
      done(null, isEmpty ? undefined : parseJson(body as Buffer));
    } catch (error) {
      done(error as Error);
    }
  });
}

/** @throws ServiceError invalidParameter saying where the text stops being JSON. */
export function parseJson(body: Buffer): unknown {
  if (!isUtf8(body)) throw new ServiceError('invalidParameter', 'body: is not valid UTF-8');
  if (isNestedDeeperThan(body, maxDepth)) {
    throw new ServiceError('invalidParameter', `body: is nested more than ${maxDepth} levels deep`);
  }
  const text = body.toString();
  try {
    return JSON.parse(text.startsWith(byteOrderMark) ? text.slice(1) : text);
  } catch (error) {
    throw new ServiceError('invalidParameter', `body: malformed JSON: ${locate(error as SyntaxError, text)}`);
  }
}

/** V8 names the place as an offset, or by quoting the text around it. */
function locate({ message }: SyntaxError, text: string): string {
  const position = / at position (\d+)(?: \(line \d+ column \d+\))?$/.exec(message);
  if (position === null) return message;
  const before = text.slice(0, Number(position[1])).split('\n');
  return `${message.slice(0, position.index)} at line ${before.length}, column ${before.at(-1)!.length + 1}`;
}
