import { ServiceError } from '../contract/errors.js';
import type { Engine } from '../engine/engine.js';
import type { Grammar } from '../engine/grammar.js';
import type { DecoderManifest } from '../models/manifest.js';
import { vocabularyOf } from './grammar/vocabulary.js';
import { GrammarProbe, type Verdict } from './grammar-probe.js';
import { isFree, type ReplyForm, schemaPath, toolsInUse } from './reply-form.js';
import type { Tokenizer } from './tokenizer.js';
import { besideJson, type ToolFormat } from './tools/tool-format.js';
import { parametersPath } from './tools/tool-grammar.js';

export interface ReplyGrammarsOptions {
  readonly engine: Engine;
  readonly manifest: DecoderManifest;
  readonly tokenizer: Tokenizer;
  readonly format: ToolFormat;
  /** The script of the thread that writes and compiles grammars, for those who do not run the built one. */
  readonly probeScript: URL | undefined;
  /** How long writing and compiling one grammar may take. */
  readonly limitMs?: number;
}

/**
 * The engine compiles again what was let through, and stands still meanwhile. The most that a request may ask for by
 * its contract, 128 tools of 5 parameters, takes half a second with a vocabulary of 49,152 tokens where nothing else
 * runs; this is enough for it beside an engine that is busy.
 */
const defaultLimitMs = 2_000;
/** Tools that are looked at one by one when the grammar of all of them is refused. */
const maxSuspects = 8;

/** Gives the grammars of replies, and lets through what the engine can compile in time. */
export class ReplyGrammars {
  readonly #options: ReplyGrammarsOptions;
  readonly #limitMs: number;
  #probe: GrammarProbe | undefined;

  constructor(options: ReplyGrammarsOptions) {
    this.#options = options;
    this.#limitMs = options.limitMs ?? defaultLimitMs;
  }

  /**
   * What the reply to a job must look like; undefined for any text.
   * @param signal Of whoever waits for it.
   * @throws ServiceError invalidParameter naming the place of a schema that cannot be honoured; the signal's reason.
   */
  async of(job: ReplyForm, signal?: AbortSignal): Promise<Grammar | undefined> {
    if (isFree(job)) return undefined;
    if (this.#options.manifest.endTokens.length === 0) {
      const field = toolsInUse(job).length > 0 ? 'tools' : 'response_format';
      throw new ServiceError('invalidParameter', `${field}: this model cannot end a text by itself`);
    }
    const verdict = await this.#judge(job, signal);
    switch (verdict.type) {
      case 'sound':
        return verdict.grammar;
      case 'refused':
        throw new ServiceError('invalidParameter', verdict.message);
      case 'empty':
        throw new ServiceError('invalidParameter', `${await this.#placeOf(job, signal)}: no value fits it`);
      case 'slow': {
        const reason = `takes more than ${this.#limitMs / 1000} s to compile`;
        throw new ServiceError('invalidParameter', `${await this.#placeOf(job, signal)}: ${reason}`);
      }
      case 'broken':
        throw new ServiceError('invalidParameter', `${await this.#placeOf(job, signal)}: cannot be compiled`);
      default:
        return verdict satisfies never;
    }
  }

  /** How calls are written in the reply to a job. */
  formatOf({ responseFormat }: ReplyForm): ToolFormat {
    const { format } = this.#options;
    return responseFormat === undefined || responseFormat.type === 'text' ? format : besideJson(format);
  }

  async close(): Promise<void> {
    await this.#probe?.close();
  }

  /** The schema that is to blame for a grammar that was given up: of many tools, it may be all of them together. */
  async #placeOf(job: ReplyForm, signal: AbortSignal | undefined): Promise<string> {
    const tools = toolsInUse(job);
    const isSchema = job.responseFormat?.type === 'json_schema';
    if (tools.length > 0 && tools.length <= maxSuspects) {
      for (const { tool, index } of tools) {
        const alone: ReplyForm = { tools: [tool], toolChoice: 'required' };
        if ((await this.#judge(alone, signal)).type !== 'sound') return parametersPath(index);
      }
    }
    return isSchema ? schemaPath : 'tools';
  }

  #judge(job: ReplyForm, signal: AbortSignal | undefined): Promise<Verdict> {
    this.#probe ??= this.#open();
    const { responseFormat, tools, toolChoice, parallelToolCalls } = job;
    const form = stringify({ responseFormat, tools, toolChoice, parallelToolCalls });
    return this.#probe.judge({ form, format: this.formatOf(job) }, signal);
  }

  /** Grammars need the vocabulary, which most workers never hand over. */
  #open(): GrammarProbe {
    const { engine, manifest, tokenizer, format, probeScript } = this.#options;
    const vocabulary = vocabularyOf({ tokenizer, manifest, spelledTokens: spelledTokens(tokenizer, format) });
    engine.useVocabulary(vocabulary);
    return new GrammarProbe(vocabulary, { limitMs: this.#limitMs, script: probeScript });
  }
}

/** @throws ServiceError invalidParameter when what the form holds is nested too deeply to be written. */
function stringify(form: ReplyForm): string {
  try {
    return JSON.stringify(form);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    const field = toolsInUse(form).length > 0 ? 'tools' : schemaPath;
    throw new ServiceError('invalidParameter', `${field}: is nested too deeply`);
  }
}

/** The control token that begins calls, where it is one. */
export function spelledTokens(tokenizer: Tokenizer, { marker }: ToolFormat): ReadonlySet<number> {
  const token = tokenizer.specialToken(marker);
  return new Set(token === undefined ? [] : [token]);
}
