import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath, pathToFileURL } from 'node:url';

const loader = pathToFileURL(fileURLToPath(new URL('./typescript-loader.mjs', import.meta.url))).href;

export interface TypeScriptChild {
  readonly process: ChildProcess;
  /** What the child sends by `process.send`, in order. */
  next(): Promise<unknown>;
  /** The exit code, or the name of the signal that ended it. */
  readonly ended: Promise<number | string>;
  /** Everything it wrote to standard output and standard error so far. */
  output(): string;
}

/** Runs a TypeScript program of the tests in a process of its own, which ends with the test process at the latest. */
export function forkTypeScript(
  program: URL,
  args: readonly string[] = [],
  nodeOptions: readonly string[] = [],
): TypeScriptChild {
  const execArgv = [...nodeOptions, '--import', loader];
  const child = fork(fileURLToPath(program), args, { execArgv, stdio: 'pipe' });
  const killOnExit = () => child.kill('SIGKILL');
  process.on('exit', killOnExit);
  let output = '';
  const streams = [child.stdout, child.stderr].map(async (stream) => {
    for await (const text of stream?.setEncoding('utf8') ?? []) output += text;
  });
  // The event `close` would say the same, but never comes when this side disconnected the channel.
  const exited = new Promise<number | string>((resolve) => {
    child.once('exit', (code, signal) => resolve(code ?? signal ?? ''));
  });
  const ended = Promise.all([exited, ...streams]).then(([how]) => {
    process.off('exit', killOnExit);
    return how;
  });
  const messages: unknown[] = [];
  const waiting: ((message: unknown) => void)[] = [];
  child.on('message', (message) => {
    const resolve = waiting.shift();
    if (resolve) resolve(message);
    else messages.push(message);
  });
  const next = async () => {
    if (messages.length > 0) return messages.shift();
    const message = new Promise<unknown>((resolve) => waiting.push(resolve));
    const early = ended.then((how): never => {
      throw new Error(`the child ended (${how}) without a message: ${output}`);
    });
    return Promise.race([message, early]);
  };
  return { process: child, next, ended, output: () => output };
}
