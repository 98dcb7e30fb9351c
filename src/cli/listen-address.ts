import { once } from 'node:events';
import { createServer } from 'node:net';
import { listenFailure } from '../platform/listen-failure.js';

/**
 * Checks that the service may listen there before any slow work is done.
 * @throws Error saying what to do when it may not.
 */
export async function checkListenAddress({ host, port }: { host: string; port: number }): Promise<void> {
  const server = createServer();
  try {
    server.listen(port, host);
    await once(server, 'listening');
  } catch (error) {
    throw new Error(listenFailure({ host, port }, error as NodeJS.ErrnoException), { cause: error });
  }
  server.close();
  await once(server, 'close');
}

/** The URL under which programs on this machine reach a service that listens there. */
export function localUrl({ host, port }: { host: string; port: number }): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}
