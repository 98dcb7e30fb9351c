/**
 * Pre-tokenizers by the name that `tokenizer.ggml.pre` gives them. llama.cpp keeps their patterns in
 * `llama-vocab.cpp`; here each is what the model's own tokenizer.json has. The patterns are Oniguruma's.
 */

const byteLevel = (useRegex: boolean) => ({
  type: 'ByteLevel',
  add_prefix_space: false,
  trim_offsets: true,
  use_regex: useRegex,
});

const split = (pattern: string) => ({
  type: 'Split',
  pattern: { Regex: pattern },
  behavior: 'Isolated',
  invert: false,
});

const sequence = (...pretokenizers: readonly object[]) => ({ type: 'Sequence', pretokenizers });

/** The byte-level pre-tokenizer's own pattern is GPT-2's. */
const gpt2 = byteLevel(true);

/** GPT-4's pattern; the families differ in how many digits stay together. */
const gpt4 = (digits: string) =>
  `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`;

export interface PreTokenizer {
  /** The fields of tokenizer.json. */
  readonly preTokenizer: object;
  readonly normalizer: object | null;
  /** Whether a whole piece that is in the vocabulary is taken as it is, whatever the merges say. */
  readonly ignoreMerges: boolean;
}

const plain = (preTokenizer: object): PreTokenizer => ({
  preTokenizer,
  normalizer: null,
  ignoreMerges: false,
});

const qwen2: PreTokenizer = {
  ...plain(sequence(split(gpt4('\\p{N}')), byteLevel(false))),
  normalizer: { type: 'NFC' },
};

const llama3: PreTokenizer = {
  ...plain(sequence(split(gpt4('\\p{N}{1,3}')), byteLevel(false))),
  ignoreMerges: true,
};

export const preTokenizers: Readonly<Record<string, PreTokenizer>> = {
  'gpt-2': plain(gpt2),
  smollm: plain(sequence({ type: 'Digits', individual_digits: true }, gpt2)),
  qwen2,
  'deepseek-r1-qwen': qwen2,
  'llama-bpe': llama3,
  // What llama.cpp does for files that name none; no model's own tokenizer is known behind it.
  default: plain(
    sequence(
      split('[\\p{P}\\$\\+<=>\\^~\\|]+'),
      split("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)"),
      split('\\p{N}+'),
      split('[0-9][0-9][0-9]'),
      byteLevel(false),
    ),
  ),
};
