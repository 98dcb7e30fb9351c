import { existsSync } from 'node:fs';

/** The engine's thread as it is built: a thread of Node.js runs no TypeScript. */
export function threadScript(): URL {
  const script = new URL('../../../dist/engine/thread.js', import.meta.url);
  if (!existsSync(script)) throw new Error('dist/engine/thread.js is missing: run `npm run build` first');
  return script;
}
