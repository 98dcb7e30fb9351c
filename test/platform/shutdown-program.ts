// A program for a child process: runs until it is shut down, and reports what it closes. Arguments: the deadline in
// milliseconds; `stuck` for a closer that never ends; `orphan` for a process that nobody forked.
import { createLogger } from '../../src/platform/logger.js';
import { Shutdown, type ShutdownProcess } from '../../src/platform/shutdown.js';

const [deadlineMs, manner, origin] = process.argv.slice(2);
const logger = createLogger({ level: 'info', name: 'program' });
const orphan: ShutdownProcess = Object.create(process, { connected: { value: undefined } });
const shutdown = new Shutdown({
  logger,
  deadlineMs: Number(deadlineMs),
  process: origin === 'orphan' ? orphan : process,
});
const tell = (message: string) => {
  if (process.connected) process.send?.(message);
};
const stay = setInterval(() => {}, 1_000);
shutdown.add('first', () => {
  clearInterval(stay);
  console.log('closed first');
});
shutdown.add('failing', () => {
  throw new Error('cannot close');
});
shutdown.add('last', async () => {
  console.log('closing last');
  tell('closing');
  process.on('SIGINT', () => tell('second signal'));
  if (manner === 'stuck') await new Promise(() => {});
  console.log('closed last');
});
tell('ready');
