import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { checkListenAddress } from '../../src/cli/listen-address.js';

describe('checkListenAddress', () => {
  it('says that a port is in use and what to do', async () => {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;

    await expect(checkListenAddress({ host: '127.0.0.1', port })).rejects.toThrow(
      `Port ${port} of 127.0.0.1 is in use: stop what uses it, or choose another with HEADRACE_PORT.`,
    );

    server.close();
    await once(server, 'close');
    await checkListenAddress({ host: '127.0.0.1', port });
  });

  it('says that a host is not an address of this machine', async () => {
    await expect(checkListenAddress({ host: '192.0.2.1', port: 0 })).rejects.toThrow(
      'HEADRACE_HOST is 192.0.2.1, which is not an address of this machine.',
    );
  });
});
