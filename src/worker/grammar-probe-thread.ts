/** The thread in which grammars are written and first compiled; whoever waits ends it when one takes too long. */
import { parentPort, workerData } from 'node:worker_threads';
import type { Grammar, Vocabulary } from '../engine/grammar.js';
import { GrammarCompiler } from '../engine/grammar-compiler.js';
import { SchemaRefusal } from './grammar/schema-refusal.js';
import type { FromProbe, ToProbe } from './grammar-probe.js';
import { type ReplyForm, writeReplyGrammar } from './reply-form.js';

if (!parentPort) throw new Error('grammar-probe-thread.js runs in a worker thread only');
const port = parentPort;
const compiler = await GrammarCompiler.open(workerData as Vocabulary);

port.on('message', async ({ form, format }: ToProbe) => {
  let grammar: Grammar;
  try {
    grammar = writeReplyGrammar(JSON.parse(form) as ReplyForm, format);
  } catch (error) {
    if (!(error instanceof SchemaRefusal)) throw error;
    say({ type: 'refused', message: error.message });
    return;
  }
  const compiled = await compiler.compile(grammar.ebnf);
  const matcher = await compiler.match(compiled);
  // A text that cannot begin is no text.
  const mask = await matcher.getNextTokenBitmask();
  matcher.dispose();
  compiled.dispose();
  say(mask.some((word) => word !== 0) ? { type: 'sound', grammar } : { type: 'empty' });
});
say({ type: 'ready' });

function say(message: FromProbe): void {
  port.postMessage(message);
}
