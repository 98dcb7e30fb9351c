import { afterEach, describe, expect, it } from 'vitest';
import type { Tool } from '../../src/contract/chat.js';
import type { ReplyForm } from '../../src/worker/reply-form.js';
import { ReplyGrammars } from '../../src/worker/reply-grammars.js';
import { toolFormatOf } from '../../src/worker/tools/tool-format.js';
import { FakeEngine } from './support/fake-engine.js';
import { chatTokenizer, decoderManifest } from './support/workbench.js';

const probeScript = new URL('../../dist/worker/grammar-probe-thread.js', import.meta.url);
const schemaPath = 'response_format.json_schema.schema';

let grammars: ReplyGrammars;
afterEach(() => grammars.close());

function open(limitMs = 20_000): ReplyGrammars {
  grammars = new ReplyGrammars({
    engine: new FakeEngine(decoderManifest),
    manifest: decoderManifest,
    tokenizer: chatTokenizer,
    format: toolFormatOf(null),
    probeScript,
    limitMs,
  });
  return grammars;
}

type Schema = Record<string, unknown>;

function replyOf(schema: Schema): ReplyForm {
  return { responseFormat: { type: 'json_schema', json_schema: { name: 'x', schema } } };
}

function tool(name: string, parameters: Schema): Tool {
  return { type: 'function', function: { name, parameters } };
}

const endless = { type: 'string', pattern: '^(a+)+$', enum: [`${'a'.repeat(60)}!`] };
const never = { type: 'object', properties: { a: { $ref: '#' } }, required: ['a'] };

describe('ReplyGrammars', () => {
  it('names the parameter of a schema that takes too long', async () => {
    await expect(open(200).of(replyOf(endless))).rejects.toMatchObject({
      kind: 'invalidParameter',
      message: `${schemaPath}: takes more than 0.2 s to compile`,
    });
  });

  it('names the tool whose parameters take too long', async () => {
    const tools = [tool('plain', { type: 'object' }), tool('endless', { properties: { a: endless } })];
    await expect(open(1_000).of({ tools, toolChoice: 'required' })).rejects.toMatchObject({
      kind: 'invalidParameter',
      message: 'tools[1].function.parameters: takes more than 1 s to compile',
    });
  });

  it('names the parameter of a schema that no value fits', async () => {
    await expect(open().of(replyOf(never))).rejects.toMatchObject({
      kind: 'invalidParameter',
      message: `${schemaPath}: no value fits it`,
    });
  });

  it('names the parameter of a schema that is nested too deeply', async () => {
    let schema: Schema = { type: 'null' };
    for (let depth = 0; depth < 20_000; depth++) schema = { items: schema };
    await expect(open().of(replyOf(schema))).rejects.toMatchObject({
      kind: 'invalidParameter',
      message: `${schemaPath}: is nested too deeply`,
    });
  });

  it('takes 128 tools of 5 parameters each', async () => {
    const parameters = (index: number) => ({
      type: 'object',
      properties: {
        text: { type: 'string' },
        [`count_${index}`]: { type: 'integer', minimum: 0, maximum: 100 + index },
        list: { type: 'array', items: { type: 'string', maxLength: 20 + index } },
        kind: { enum: [`kind ${index}`, 'other'] },
        when: { type: 'string', format: 'date-time' },
      },
      required: ['text', 'kind'],
      additionalProperties: false,
    });
    const tools = Array.from({ length: 128 }, (_, index) => tool(`tool_${index}`, parameters(index)));
    await expect(open().of({ tools })).resolves.toMatchObject({ ebnf: expect.stringContaining('tool_127') });
  });

  it('leaves a reply of any text without a grammar', async () => {
    expect(await open().of({ tools: [tool('a', {})], toolChoice: 'none' })).toBeUndefined();
  });
});
