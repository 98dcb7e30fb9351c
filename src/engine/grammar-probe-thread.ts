/** The thread in which grammars are compiled for the first time; whoever waits ends it when one takes too long. */
import { parentPort, workerData } from 'node:worker_threads';
import type { Vocabulary } from './grammar.js';
import { GrammarCompiler } from './grammar-compiler.js';
import type { FromProbe, ToProbe } from './grammar-probe.js';

if (!parentPort) throw new Error('grammar-probe-thread.js runs in a worker thread only');
const port = parentPort;
const compiler = await GrammarCompiler.open(workerData as Vocabulary);

port.on('message', async ({ ebnf }: ToProbe) => {
  const compiled = await compiler.compile(ebnf);
  const matcher = await compiler.match(compiled);
  // A text that cannot begin is no text.
  const mask = await matcher.getNextTokenBitmask();
  matcher.dispose();
  compiled.dispose();
  say({ type: mask.some((word) => word !== 0) ? 'sound' : 'empty' });
});
say({ type: 'ready' });

function say(message: FromProbe): void {
  port.postMessage(message);
}
