import { existsSync } from 'node:fs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { vocabularyOf } from '../../src/worker/grammar/vocabulary.js';
import { GrammarProbe, type GrammarProbeOptions, type ToProbe } from '../../src/worker/grammar-probe.js';
import { toolFormatOf } from '../../src/worker/tools/tool-format.js';
import { chatTokenizer, decoderManifest } from './support/workbench.js';

const vocabulary = vocabularyOf({
  tokenizer: chatTokenizer,
  manifest: decoderManifest,
  spelledTokens: new Set(),
});

/** The thread as it is built: a thread of Node.js runs no TypeScript. */
const script = new URL('../../dist/worker/grammar-probe-thread.js', import.meta.url);
if (!existsSync(script)) throw new Error(`${script} is missing: run \`npm run build\` first`);

let probe: GrammarProbe;
afterEach(() => probe.close());

function open(options: Partial<GrammarProbeOptions> = {}): GrammarProbe {
  probe = new GrammarProbe(vocabulary, { limitMs: 20_000, script, ...options });
  return probe;
}

/** A thread that does this at each `form`. */
function threadThat(does: string, { before = "parentPort.postMessage({ type: 'ready' });" } = {}): URL {
  return new URL(
    `data:text/javascript,${encodeURIComponent(`
      import { parentPort, threadId } from 'node:worker_threads';
      parentPort.on('message', ({ form }) => { ${does} });
      ${before}
    `)}`,
  );
}

function form(schema: unknown): ToProbe {
  const responseFormat = { type: 'json_schema', json_schema: { name: 'x', schema } };
  return { form: JSON.stringify({ responseFormat }), format: toolFormatOf(null) };
}

const endless = form({ type: 'string', pattern: '^(a+)+$', enum: [`${'a'.repeat(60)}!`] });

describe('GrammarProbe', () => {
  it('gives the grammar of a form that compiles', async () => {
    const verdict = await open().judge(form({ type: 'integer' }));
    expect(verdict).toMatchObject({ type: 'sound', grammar: { strings: [] } });
  });

  it('passes on why a schema is refused', async () => {
    expect(await open().judge(form({ not: {} }))).toEqual({
      type: 'refused',
      message: 'response_format.json_schema.schema.not: is not supported',
    });
  });

  it('gives up a schema that takes for ever when its time is over', async () => {
    expect(await open({ limitMs: 200 }).judge(endless)).toEqual({ type: 'slow' });
  });

  it('takes the next form after one that was given up', async () => {
    open({ limitMs: 3_000 });
    const [given, next] = await Promise.all([probe.judge(endless), probe.judge(form({ type: 'null' }))]);
    expect([given.type, next.type]).toEqual(['slow', 'sound']);
  });

  it('gives up a thread that does not answer', async () => {
    expect(await open({ limitMs: 20, script: threadThat('') }).judge(endless)).toEqual({ type: 'slow' });
  });

  it.each([
    ['fails', "throw new Error('no');"],
    ['ends', 'process.exit(0);'],
    ['rejects', "Promise.reject(new Error('no'));"],
  ])('says that a grammar is broken when the thread %s', async (_, does) => {
    expect(await open({ script: threadThat(does) }).judge(endless)).toEqual({ type: 'broken' });
  });

  it('takes the next form after one that ended its thread', async () => {
    const endsOnce =
      "if (form.includes('end')) process.exit(0); else parentPort.postMessage({ type: 'empty' });";
    open({ script: threadThat(endsOnce) });
    const [lost, next] = await Promise.all([probe.judge(form({ const: 'end' })), probe.judge(form({}))]);
    expect([lost.type, next.type]).toEqual(['broken', 'empty']);
  });

  it('does not try a form that nobody waits for when its turn comes', async () => {
    const answers = "parentPort.postMessage({ type: 'refused', message: form });";
    open({ script: threadThat(answers) });
    const [reason, gone] = [new Error('gone'), new AbortController()];
    const first = probe.judge(form({ const: 'first' }));
    const left = probe.judge(form({ const: 'left' }), gone.signal);
    const shared = [gone.signal, undefined].map((signal) => probe.judge(form({ const: 'shared' }), signal));
    gone.abort(reason);
    await expect(left).rejects.toBe(reason);
    expect([await first, ...(await Promise.all(shared))].map(({ type }) => type)).toEqual([
      'refused',
      'refused',
      'refused',
    ]);
    expect(await probe.judge(form({ const: 'left' }))).toMatchObject({ type: 'refused' });
  });

  it('fails when its thread cannot start, and tries again', async () => {
    open({ script: threadThat('', { before: 'process.exit(0);' }) });
    await expect(probe.judge(endless)).rejects.toThrow('ended');
    await expect(probe.judge(endless)).rejects.toThrow('ended');
  });

  it('remembers verdicts', async () => {
    open();
    const first = await probe.judge(form({ type: 'null' }));
    expect(await probe.judge(form({ type: 'null' }))).toBe(first);
    expect(probe.size).toBe(1);
  });

  it.each([
    ['slow', '', 20],
    ['broken', 'process.exit(0);', 20_000],
  ])('remembers for some time only that a form was %s', async (type, does, limitMs) => {
    const script = threadThat(does);
    open({ limitMs, script });
    const first = await probe.judge(endless);
    expect(first).toEqual({ type });
    expect(await probe.judge(endless)).toBe(first);

    await probe.close();
    open({ limitMs, script, retryMs: 1 });
    await probe.judge(endless);
    await vi.waitFor(() => expect(probe.size).toBe(0));
    expect(await probe.judge(endless)).toEqual({ type });
  });

  it('forgets the verdicts asked for longest ago when they grow too long', async () => {
    const answers = "parentPort.postMessage({ type: 'empty' });";
    open({ script: threadThat(answers), maxCharacters: 1_000 });
    for (let index = 0; index < 100; index++) await probe.judge(form({ const: index }));
    expect(probe.size).toBeGreaterThan(0);
    expect(probe.size).toBeLessThan(20);
  });

  it('takes nothing when it is closed', async () => {
    open({ script: threadThat('') });
    const waiting = expect(probe.judge(endless)).rejects.toThrow('closed');
    await probe.close();
    await waiting;
    await expect(probe.judge(form({}))).rejects.toThrow('closed');
  });
});
