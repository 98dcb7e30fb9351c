import { once } from 'node:events';
import { createServer } from 'node:net';

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

/** What to tell a person when listening failed. */
export function listenFailure(
  { host, port }: { host: string; port: number },
  { code, message }: NodeJS.ErrnoException,
): string {
  switch (code) {
    case 'EADDRINUSE':
      return `Port ${port} of ${host} is in use: stop what uses it, or choose another with HEADRACE_PORT.`;
    case 'EACCES':
      return `Port ${port} may not be used by this user: choose one above 1023 with HEADRACE_PORT.`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `HEADRACE_HOST is ${host}, which is not an address of this machine.`;
    default:
      return `Cannot listen on ${host}, port ${port}: ${message}.`;
  }
}

/** The URL under which programs on this machine reach a service that listens there. */
export function localUrl({ host, port }: { host: string; port: number }): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}
