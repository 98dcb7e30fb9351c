import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** Milliseconds from each request to the end of its response. */
export interface Load {
  readonly requests: number;
  readonly requestsPerSecond: number;
  readonly p50: number;
  readonly p99: number;
}

/**
 * Sends one request over and over on `clients` connections, each waiting for its response before the next. As little
 * of a client as there can be, because it shares the machine with what it measures.
 */
export async function load(options: {
  port: number;
  request: string;
  clients: number;
  seconds: number;
}): Promise<Load> {
  const { port, request, clients, seconds } = options;
  const bytes = Buffer.from(request);
  const sockets = await Promise.all(Array.from({ length: clients }, () => open(port)));
  const taken: number[] = [];
  const begun = performance.now();
  const until = begun + seconds * 1000;
  await Promise.all(
    sockets.map(async (socket) => {
      while (performance.now() < until) {
        const sent = performance.now();
        await exchange(socket, bytes);
        taken.push(performance.now() - sent);
      }
      socket.destroy();
    }),
  );
  const elapsed = (performance.now() - begun) / 1000;
  taken.sort((a, b) => a - b);
  const at = (share: number) => taken[Math.floor(taken.length * share)]!;
  return { requests: taken.length, requestsPerSecond: taken.length / elapsed, p50: at(0.5), p99: at(0.99) };
}

async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').setNoDelay();
  await once(socket, 'connect');
  return socket;
}

function exchange(socket: Socket, request: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    let response = '';
    const take = (data: Buffer) => {
      response += data.toString('latin1');
      const head = response.indexOf('\r\n\r\n');
      if (head === -1) return;
      const length = Number(/\r\ncontent-length: (\d+)/.exec(response)?.[1]);
      if (response.length < head + 4 + length) return;
      socket.off('data', take).off('close', fail);
      if (response.startsWith('HTTP/1.1 200 ')) resolve();
      else reject(new Error(response));
    };
    const fail = () => reject(new Error(`the connection was closed: ${response}`));
    socket.on('data', take).on('close', fail);
    socket.write(request);
  });
}
