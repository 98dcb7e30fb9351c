import type { Tool } from '../contract/chat.js';
import { ServiceError } from '../contract/errors.js';
import type { ChatJob } from '../contract/job.js';
import type { Engine } from '../engine/engine.js';
import type { Grammar } from '../engine/grammar.js';
import { GrammarProbe, type Verdict } from '../engine/grammar-probe.js';
import type { DecoderManifest } from '../models/manifest.js';
import { writeSchema } from './grammar/json-grammar.js';
import { RuleBook } from './grammar/rule-book.js';
import { SchemaRefusal } from './grammar/schema-refusal.js';
import { vocabularyOf } from './grammar/vocabulary.js';
import type { Tokenizer } from './tokenizer.js';
import { besideJson, type ToolFormat } from './tools/tool-format.js';
import { callsOnly, type PlacedTool, parametersPath, textOrCalls, writeCalls } from './tools/tool-grammar.js';

export interface ReplyGrammarsOptions {
  readonly engine: Engine;
  readonly manifest: DecoderManifest;
  readonly tokenizer: Tokenizer;
  readonly format: ToolFormat;
  /** The script of the thread that compiles grammars for the first time, for those who do not run the built one. */
  readonly probeScript: URL | undefined;
}

/** What a job says of the form of its reply. */
type ReplyForm = Pick<ChatJob, 'responseFormat' | 'tools' | 'toolChoice' | 'parallelToolCalls'>;

/** Longer than any schema takes that people write, and short enough for an engine to stand still once. */
const compileLimitMs = 2_000;
/** Grammars that are remembered as they were written. */
const maxRemembered = 200;
const schemaPath = 'response_format.json_schema.schema';

/** Writes the grammars of replies, and lets through what the engine can compile in time. */
export class ReplyGrammars {
  readonly #options: ReplyGrammarsOptions;
  readonly #written = new Map<string, Grammar>();
  #probe: GrammarProbe | undefined;

  constructor(options: ReplyGrammarsOptions) {
    this.#options = options;
  }

  /**
   * What the reply to a job must look like; undefined for any text.
   * @throws ServiceError invalidParameter naming the place of a schema that cannot be honoured.
   */
  async of(job: ReplyForm): Promise<Grammar | undefined> {
    const { responseFormat, toolChoice } = job;
    const tools = toolsInUse(job);
    if (tools.length === 0 && (responseFormat === undefined || responseFormat.type === 'text'))
      return undefined;
    if (this.#options.manifest.endTokens.length === 0) {
      const field = tools.length > 0 ? 'tools' : 'response_format';
      throw new ServiceError('invalidParameter', `${field}: this model cannot end a text by itself`);
    }
    const key = JSON.stringify([responseFormat, tools, toolChoice, job.parallelToolCalls]);
    const grammar = this.#written.get(key) ?? this.#write(job);
    this.#written.delete(key);
    this.#written.set(key, grammar);
    if (this.#written.size > maxRemembered) this.#written.delete(this.#written.keys().next().value!);
    await this.#check(grammar, job);
    return grammar;
  }

  /** How calls are written in the reply to a job. */
  formatOf({ responseFormat }: ReplyForm): ToolFormat {
    const { format } = this.#options;
    return responseFormat === undefined || responseFormat.type === 'text' ? format : besideJson(format);
  }

  async close(): Promise<void> {
    await this.#probe?.close();
  }

  #write(job: ReplyForm): Grammar {
    const format = this.formatOf(job);
    const book = new RuleBook();
    const content = writeContent(job, book);
    const tools = toolsInUse(job);
    if (tools.length === 0) return book.grammar(content ?? 'value');
    // Who names the function wants one call of it.
    const parallel = typeof job.toolChoice !== 'object' && (job.parallelToolCalls ?? true);
    const calls = writeCalls(tools, { format, parallel, book });
    if (job.toolChoice !== undefined && job.toolChoice !== 'auto')
      return book.grammar(callsOnly(calls, format));
    if (content !== undefined) return book.grammar(book.any([content, callsOnly(calls, format)]));
    return book.grammar(textOrCalls(calls, format, book));
  }

  async #check(grammar: Grammar, job: ReplyForm): Promise<void> {
    const verdict = await this.#judge(grammar);
    if (verdict === 'sound') return;
    throw new SchemaRefusal(await this.#placeOf(job), reasons[verdict]);
  }

  /** The schema that is to blame for a grammar that was refused. */
  async #placeOf(job: ReplyForm): Promise<string> {
    for (const { tool, index } of toolsInUse(job)) {
      const alone: ReplyForm = { tools: [{ ...tool }], toolChoice: 'required' };
      if ((await this.#judge(this.#write(alone))) !== 'sound') return parametersPath(index);
    }
    return job.responseFormat?.type === 'json_schema' ? schemaPath : 'tools';
  }

  #judge({ ebnf }: Grammar): Promise<Verdict> {
    this.#probe ??= this.#open();
    return this.#probe.judge(ebnf);
  }

  /** Grammars need the vocabulary, which most workers never hand over. */
  #open(): GrammarProbe {
    const { engine, manifest, tokenizer, format, probeScript } = this.#options;
    const vocabulary = vocabularyOf({ tokenizer, manifest, spelledTokens: spelledTokens(tokenizer, format) });
    engine.useVocabulary(vocabulary);
    return new GrammarProbe(vocabulary, { limitMs: compileLimitMs, script: probeScript });
  }
}

const reasons: Readonly<Record<Exclude<Verdict, 'sound'>, string>> = {
  empty: 'no value fits it',
  slow: `takes more than ${compileLimitMs / 1000} s to compile`,
  broken: 'cannot be compiled',
};

/** The tools that the reply may call, with their places. */
function toolsInUse({ tools = [], toolChoice = 'auto' }: ReplyForm): PlacedTool[] {
  if (toolChoice === 'none') return [];
  const placed = tools.map((tool: Tool, index) => ({ tool, index }));
  if (typeof toolChoice === 'string') return placed;
  const { name } = toolChoice.function;
  const named = placed.filter(({ tool }) => tool.function.name === name);
  if (named.length === 0) {
    throw new ServiceError(
      'invalidParameter',
      `tool_choice.function.name: there is no tool ${JSON.stringify(name)}`,
    );
  }
  return named;
}

/** The rule of the text itself, where it has a form. */
function writeContent({ responseFormat }: ReplyForm, book: RuleBook): string | undefined {
  switch (responseFormat?.type) {
    case undefined:
    case 'text':
      return undefined;
    case 'json_object':
      return 'object';
    case 'json_schema': {
      const { schema, strict } = responseFormat.json_schema;
      return writeSchema({ schema, path: schemaPath }, book, { strict: strict ?? false });
    }
    default:
      return responseFormat satisfies never;
  }
}

/** The control token that begins calls, where it is one. */
export function spelledTokens(tokenizer: Tokenizer, { marker }: ToolFormat): ReadonlySet<number> {
  const token = tokenizer.specialToken(marker);
  return new Set(token === undefined ? [] : [token]);
}
