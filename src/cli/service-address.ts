import { readFile } from 'node:fs/promises';
import { InvalidArgumentError } from 'commander';
import type { Config } from '../platform/config.js';
import type { ServiceAddress } from './client/service-client.js';
import { localUrl } from './listen-address.js';
import { serviceUrl } from './option-values.js';
import type { ServiceOptions } from './program.js';

/**
 * Which service a client command asks and with which key: what the options say, else the environment, else the
 * service of this machine and the development key in `keyFile`.
 * @throws Error when there is no key, or HEADRACE_URL is no URL.
 */
export async function findService(
  options: ServiceOptions,
  config: Pick<Config, 'url' | 'key' | 'host' | 'port'>,
  keyFile: string,
): Promise<ServiceAddress> {
  const url = options.url ?? urlFromEnvironment(config.url) ?? localUrl(config);
  if (options.key !== undefined) return { url, key: options.key, keyOrigin: 'the one given with --key' };
  if (config.key !== undefined) return { url, key: config.key, keyOrigin: 'the one in HEADRACE_KEY' };
  try {
    return { url, key: (await readFile(keyFile, 'utf8')).trim(), keyOrigin: `the one in ${keyFile}` };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason =
      code === 'ENOENT' ? `there is no ${keyFile}, which "npm start" writes in its own folder` : message;
    throw new Error(`There is no API key: ${reason}. Give one with --key or HEADRACE_KEY.`, { cause: error });
  }
}

function urlFromEnvironment(value: string | undefined): string | undefined {
  try {
    return value === undefined ? undefined : serviceUrl(value);
  } catch (error) {
    if (error instanceof InvalidArgumentError) throw new Error(`HEADRACE_URL: ${error.message}`);
    throw error;
  }
}
