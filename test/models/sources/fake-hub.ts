import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export interface FakeHubOptions {
  /** Paths in the repository `owner/name` to their contents; those with `lfs` are kept on another host. */
  readonly files: Readonly<Record<string, string | Uint8Array>>;
  readonly lfs?: readonly string[];
  readonly token?: string;
  /** Called for each whole file instead of sending it; false lets it be sent. */
  readonly send?: (path: string, response: ServerResponse) => boolean;
}

export interface FakeHub {
  readonly url: string;
  /** Method and path of every request, in order; those of the other host begin with `cdn`. */
  readonly requests: string[];
  /** Whether a request to the other host carried the token. */
  readonly leaks: string[];
}

/** A server that answers as the Hugging Face hub does: the tree of a repository, and files by redirect and range. */
export async function startFakeHub(options: FakeHubOptions): Promise<FakeHub> {
  const requests: string[] = [];
  const leaks: string[] = [];
  const cdn = await listen((request, response) => {
    const path = decodeURIComponent(request.url!.slice(1));
    requests.push(`cdn ${path}`);
    if (request.headers.authorization) leaks.push(path);
    sendFile(request, response, path, options);
  });
  const url = await listen((request, response) => {
    const { pathname } = new URL(request.url!, 'http://hub');
    requests.push(`${request.method} ${pathname}`);
    if (options.token && request.headers.authorization !== `Bearer ${options.token}`) {
      sendJson(response, 401, { error: 'Invalid username or password.' });
    } else if (pathname === '/api/models/owner/name/tree/main') {
      sendJson(response, 200, tree(options));
    } else if (pathname.startsWith('/owner/name/resolve/main/')) {
      const path = pathname.slice('/owner/name/resolve/main/'.length);
      if (!options.lfs?.includes(path)) {
        sendFile(request, response, path, options);
      } else {
        response.writeHead(302, { location: `${cdn}/${encodeURIComponent(path)}` }).end();
      }
    } else {
      sendJson(response, 404, { error: 'Repository not found' });
    }
  });
  return { url, requests, leaks };
}

async function listen(
  handler: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> {
  const server = createServer(handler).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function tree({ files, lfs }: FakeHubOptions): object[] {
  const folders = new Set(
    Object.keys(files).flatMap((path) => (path.includes('/') ? [path.split('/')[0]!] : [])),
  );
  return [
    ...[...folders].map((path) => ({ type: 'directory', path, size: 0, oid: 'tree' })),
    ...Object.entries(files).map(([path, contents]) => {
      const size = Buffer.from(contents).length;
      const oid = createHash('sha256').update(contents).digest('hex');
      return lfs?.includes(path)
        ? { type: 'file', path, size, oid: 'pointer', lfs: { oid, size, pointerSize: 134 } }
        : { type: 'file', path, size, oid: 'blob' };
    }),
  ];
}

function sendFile(
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
  { files, send }: FakeHubOptions,
): void {
  const contents = files[path];
  if (contents === undefined) {
    response.writeHead(404, { 'x-error-code': 'EntryNotFound' }).end();
    return;
  }
  const bytes = Buffer.from(contents);
  if (request.headers.range === 'bytes=0-0') {
    response
      .writeHead(206, { 'content-range': `bytes 0-0/${bytes.length}`, etag: '"tag"' })
      .end(bytes.subarray(0, 1));
  } else if (!send?.(path, response)) {
    response.writeHead(200, { 'content-length': bytes.length, etag: '"tag"' }).end(bytes);
  }
}
