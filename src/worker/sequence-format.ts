import { z } from 'zod';

/** One element of a formatted sequence: a control token, or the place of the first or second text. */
type Element =
  | { readonly kind: 'special'; readonly tokens: readonly number[]; readonly type: number }
  | { readonly kind: 'text'; readonly which: 'first' | 'second'; readonly type: number };

/** Token ids as an encoder takes them; `types` tells the first text from the second. */
export interface FormattedSequence {
  readonly tokens: Int32Array;
  readonly types: Int32Array;
}

/**
 * How a model wants one text, or a pair, to be put between control tokens: `[CLS] a [SEP] b [SEP]` for BERT,
 * `<s> a </s></s> b </s>` for XLM-RoBERTa. It comes from the post-processor of the model's own tokenizer.
 */
export class SequenceFormat {
  readonly #single: readonly Element[];
  readonly #pair: readonly Element[];

  constructor(single: readonly Element[], pair: readonly Element[]) {
    this.#single = single;
    this.#pair = pair;
  }

  /** Control tokens that a single text, or a pair, is given. */
  get singleOverhead(): number {
    return overhead(this.#single);
  }

  get pairOverhead(): number {
    return overhead(this.#pair);
  }

  single(text: Int32Array): FormattedSequence {
    return fill(this.#single, text, new Int32Array());
  }

  pair(first: Int32Array, second: Int32Array): FormattedSequence {
    return fill(this.#pair, first, second);
  }
}

function overhead(elements: readonly Element[]): number {
  return elements.reduce((sum, element) => sum + (element.kind === 'special' ? element.tokens.length : 0), 0);
}

function fill(elements: readonly Element[], first: Int32Array, second: Int32Array): FormattedSequence {
  const parts = elements.map((element) => {
    if (element.kind === 'special') return element.tokens;
    return element.which === 'first' ? first : second;
  });
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const tokens = new Int32Array(length);
  const types = new Int32Array(length);
  let offset = 0;
  for (const [index, part] of parts.entries()) {
    tokens.set(part, offset);
    types.fill(elements[index]!.type, offset, offset + part.length);
    offset += part.length;
  }
  return { tokens, types };
}

const templateElementSchema = z.union([
  z.object({ SpecialToken: z.object({ id: z.string(), type_id: z.int() }) }),
  z.object({ Sequence: z.object({ id: z.enum(['A', 'B']), type_id: z.int() }) }),
]);

const delimiterSchema = z.tuple([z.string(), z.int()]);

/** The post-processors of the tokenizers library that add control tokens. */
const postProcessorSchema = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('TemplateProcessing'),
    single: z.array(templateElementSchema),
    pair: z.array(templateElementSchema),
    special_tokens: z.record(z.string(), z.object({ ids: z.array(z.int()) })),
  }),
  z.object({ type: z.literal('BertProcessing'), sep: delimiterSchema, cls: delimiterSchema }),
  z.object({ type: z.literal('RobertaProcessing'), sep: delimiterSchema, cls: delimiterSchema }),
]);

const processorSequenceSchema = z.object({ type: z.literal('Sequence'), processors: z.array(z.unknown()) });

const first: Element = { kind: 'text', which: 'first', type: 0 };
const bare = new SequenceFormat([first], [first, { kind: 'text', which: 'second', type: 0 }]);

/** The format that a tokenizer file's `post_processor` describes; one without control tokens adds none. */
export function sequenceFormatOf(postProcessor: unknown): SequenceFormat {
  const sequence = processorSequenceSchema.safeParse(postProcessor);
  const candidates = sequence.success ? sequence.data.processors : [postProcessor];
  for (const candidate of candidates) {
    const parsed = postProcessorSchema.safeParse(candidate);
    if (parsed.success) return formatOf(parsed.data);
  }
  return bare;
}

function formatOf(processor: z.infer<typeof postProcessorSchema>): SequenceFormat {
  switch (processor.type) {
    case 'TemplateProcessing': {
      const elements = (template: typeof processor.single) =>
        template.map((element): Element => {
          if ('Sequence' in element) {
            const { id, type_id } = element.Sequence;
            return { kind: 'text', which: id === 'A' ? 'first' : 'second', type: type_id };
          }
          const { id, type_id } = element.SpecialToken;
          const ids = processor.special_tokens[id]?.ids;
          if (ids === undefined) throw new Error(`The post-processor names "${id}" and does not define it.`);
          return { kind: 'special', tokens: ids, type: type_id };
        });
      return new SequenceFormat(elements(processor.single), elements(processor.pair));
    }
    case 'BertProcessing':
    case 'RobertaProcessing': {
      const isBert = processor.type === 'BertProcessing';
      const special = (type: number, ...tokens: number[]): Element => ({ kind: 'special', tokens, type });
      const [cls, sep] = [processor.cls[1], processor.sep[1]];
      const secondType = isBert ? 1 : 0;
      const single = [special(0, cls), first, special(0, sep)];
      const pair: Element[] = [
        ...single,
        ...(isBert ? [] : [special(0, sep)]),
        { kind: 'text', which: 'second', type: secondType },
        special(secondType, sep),
      ];
      return new SequenceFormat(single, pair);
    }
    default:
      return processor satisfies never;
  }
}
