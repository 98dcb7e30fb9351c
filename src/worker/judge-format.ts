import type { JudgeTokens } from '../engine/engine.js';
import type { FormattedSequence } from './sequence-format.js';
import type { Tokenizer } from './tokenizer.js';

/**
 * How a causal reranker is asked about a document, in the words that the Qwen3 rerankers were trained on (from their
 * model card). It answers with one token, after a thought that is already over.
 */
const opening =
  '<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct ' +
  'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n';
const closing = '<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n';
/** What a judge is told where the catalogue says nothing: what its authors recommend. */
const usualInstruction = 'Given a web search query, retrieve relevant passages that answer the query';
const turnTokens = ['<|im_start|>', '<|im_end|>'];

/** What stands before a document: a space, which is a part of its first token. */
export const documentLead = ' ';

/** @throws Error when the tokenizer lacks the control tokens of the question, or the answers. */
export async function judgeTokens(tokenizer: Tokenizer): Promise<JudgeTokens> {
  const missing = turnTokens.filter((spelling) => tokenizer.specialToken(spelling) === undefined);
  if (missing.length > 0) {
    throw new Error(`The model cannot judge documents: its tokenizer has no ${missing.join(' and no ')}`);
  }
  return { yes: await answer(tokenizer, 'yes'), no: await answer(tokenizer, 'no') };
}

async function answer(tokenizer: Tokenizer, word: string): Promise<number> {
  const [token, ...rest] = await tokenizer.encode(word);
  if (token === undefined || rest.length > 0) {
    throw new Error(`The model cannot judge documents: "${word}" is not one token of its vocabulary`);
  }
  return token;
}

/** The question about one query; documents stand in the middle of it. */
export class JudgeFormat {
  readonly #before: Int32Array;
  readonly #after: Int32Array;

  private constructor(before: Int32Array, after: Int32Array) {
    this.#before = before;
    this.#after = after;
  }

  /** What is in `instruction` and `query` stays text, whatever it looks like. */
  static async of(
    tokenizer: Tokenizer,
    { instruction = usualInstruction, query }: { instruction?: string | undefined; query: string },
  ): Promise<JudgeFormat> {
    const before = await Promise.all([
      tokenizer.encode(tokenizer.specials.mark(opening)),
      tokenizer.encode(`<Instruct>: ${instruction}\n<Query>: ${query}\n<Document>:`),
    ]);
    const after = await tokenizer.encode(tokenizer.specials.mark(closing));
    return new JudgeFormat(Int32Array.from(before.flatMap((part) => [...part])), after);
  }

  /** Tokens beside the document's. */
  get overhead(): number {
    return this.#before.length + this.#after.length;
  }

  /** @param document tokens of its text behind `documentLead` */
  around(document: Int32Array): FormattedSequence {
    const tokens = new Int32Array(this.overhead + document.length);
    tokens.set(this.#before);
    tokens.set(document, this.#before.length);
    tokens.set(this.#after, this.#before.length + document.length);
    return { tokens, types: new Int32Array(tokens.length) };
  }
}
