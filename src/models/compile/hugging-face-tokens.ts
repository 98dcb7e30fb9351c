import { join } from 'node:path';
import { z } from 'zod';
import { CheckpointError } from './checkpoint.js';
import { parseJson, readJson, readJsonIfPresent, readTextIfPresent } from './json-file.js';

/** A special token is written as its text, or as the fields of an added token. */
const tokenTextSchema = z
  .union([z.string(), z.looseObject({ content: z.string() }).transform(({ content }) => content)])
  .nullish();

const templateSchema = z
  .union([z.string(), z.array(z.object({ name: z.string(), template: z.string() }))])
  .nullish();

const tokenizerConfigSchema = z.object({
  bos_token: tokenTextSchema,
  eos_token: tokenTextSchema,
  chat_template: templateSchema,
  model_max_length: z.number().positive().nullish(),
  tokenizer_class: z.string().nullish(),
  model_input_names: z.array(z.string()).nullish(),
});

const endTokensSchema = z
  .union([z.int(), z.array(z.int())])
  .nullish()
  .transform((ids) => (ids == null ? [] : [ids].flat()));

const generationSchema = z.object({
  eos_token_id: endTokensSchema,
  temperature: z.number().nonnegative().nullish(),
  top_p: z.number().positive().max(1).nullish(),
  top_k: z.int().nullish(),
});

const tokenizerSchema = z.object({
  added_tokens: z.array(z.object({ id: z.int(), content: z.string() })).default([]),
  model: z
    .object({
      type: z.string().optional(),
      vocab: z.union([z.record(z.string(), z.int()), z.array(z.unknown())]),
      merges: z.array(z.unknown()).optional(),
    })
    // Without them every character would be a token of its own, which nothing would complain of.
    .refine(({ type, merges }) => type !== 'BPE' || merges !== undefined, {
      path: ['merges'],
      error: 'are missing',
    }),
});

/** What a Hugging Face folder says of tokens, beside its weights. */
export interface HuggingFaceTokens {
  readonly tokenizerJson: string;
  readonly endTokens: readonly number[];
  readonly chatTemplate: string | null;
  readonly beginText: string | null;
  readonly endText: string | null;
  readonly generation: { readonly temperature?: number; readonly topP?: number; readonly topK?: number };
  /** `model_max_length` of tokenizer_config.json, where it is a limit and not the library's word for none. */
  readonly maxLength: number | undefined;
  /** Whether transformers' tokenizer of this folder gives the model token types, where it takes any. */
  readonly givesTypes: boolean;
}

/** @throws CheckpointError when tokenizer.json is missing or any of the files is not what it should be. */
export async function readHuggingFaceTokens(folder: string): Promise<HuggingFaceTokens> {
  const tokenizerPath = join(folder, 'tokenizer.json');
  const tokenizerJson = await readTextIfPresent(tokenizerPath);
  if (tokenizerJson === undefined) {
    throw new CheckpointError(`${tokenizerPath}: is missing`);
  }
  const tokenizer = parseJson(tokenizerPath, tokenizerJson, tokenizerSchema);
  const tokenizerConfig =
    (await readJsonIfPresent(join(folder, 'tokenizer_config.json'), tokenizerConfigSchema)) ?? {};
  const generation = await readJsonIfPresent(join(folder, 'generation_config.json'), generationSchema);
  const config = await readJson(join(folder, 'config.json'), z.object({ eos_token_id: endTokensSchema }));
  const endText = tokenizerConfig.eos_token ?? null;
  const endId = endText === null ? undefined : tokenId(tokenizer, endText);
  const endTokens = [...(generation?.eos_token_id ?? []), ...config.eos_token_id, endId ?? []].flat();
  const maxLength = tokenizerConfig.model_max_length;
  return {
    tokenizerJson: withoutLengths(tokenizerJson),
    endTokens: [...new Set(endTokens)],
    chatTemplate: await readChatTemplate(folder, tokenizerConfig.chat_template),
    beginText: tokenizerConfig.bos_token ?? null,
    endText,
    generation: {
      temperature: generation?.temperature ?? undefined,
      topP: generation?.top_p ?? undefined,
      // transformers writes 0 for "off".
      topK: generation?.top_k === 0 ? -1 : (generation?.top_k ?? undefined),
    },
    givesTypes: givesTypes(tokenizerConfig),
    maxLength: maxLength != null && Number.isSafeInteger(maxLength) ? maxLength : undefined,
  };
}

/** transformers' own default class, which knows nothing of the model, makes no token types unless told to. */
function givesTypes(config: Partial<z.infer<typeof tokenizerConfigSchema>>): boolean {
  return (
    config.model_input_names?.includes('token_type_ids') ?? config.tokenizer_class !== 'TokenizersBackend'
  );
}

/**
 * Some authors left the truncation and padding of their training in the file; a caller that cuts documents into
 * chunks and counts tokens must see every token and no padding.
 */
function withoutLengths(tokenizerJson: string): string {
  const tokenizer = JSON.parse(tokenizerJson);
  return tokenizer.truncation || tokenizer.padding
    ? JSON.stringify({ ...tokenizer, truncation: null, padding: null })
    : tokenizerJson;
}

function tokenId({ added_tokens, model }: z.infer<typeof tokenizerSchema>, text: string): number | undefined {
  const added = added_tokens.find(({ content }) => content === text);
  if (added) {
    return added.id;
  }
  return !Array.isArray(model.vocab) && Object.hasOwn(model.vocab, text) ? model.vocab[text] : undefined;
}

/** A file of its own wins over the field in tokenizer_config.json; of several templates, `default` is the one. */
async function readChatTemplate(
  folder: string,
  field: z.infer<typeof templateSchema>,
): Promise<string | null> {
  const file = await readTextIfPresent(join(folder, 'chat_template.jinja'));
  if (file !== undefined) {
    return file;
  }
  if (!Array.isArray(field)) {
    return field ?? null;
  }
  const template = field.find(({ name }) => name === 'default');
  if (!template) {
    throw new CheckpointError(
      `${join(folder, 'tokenizer_config.json')}: none of the chat templates is named default`,
    );
  }
  return template.template;
}
