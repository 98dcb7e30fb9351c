import { createHash } from 'node:crypto';
import { Template } from '@huggingface/jinja';
import type { ContentPart, Message, Tool, ToolCall } from '../contract/chat.js';
import { ServiceError } from '../contract/errors.js';
import type { SpecialShield } from './special-shield.js';
import type { SpecialTokens } from './special-tokens.js';
import { describeTools, signatureOf, spellCalls } from './tools/default-prompt.js';
import { knowsCalls, takesTools } from './tools/tool-format.js';

/**
 * For models published without a template: each message under its role's name, a blank line between them, and the
 * assistant's name at the end for the model to go on from.
 */
const plainTemplate = `{{ bos_token }}{% for message in messages %}{{ message.role | capitalize }}: {{ message.content }}

{% endfor %}Assistant:`;

/**
 * The library's own raise_exception throws an error like any other; this one's can be told from a broken template.
 * The library drops the line end after a block.
 */
const prelude = '{% set raise_exception = refuse %}\n';

export interface ChatTemplateOptions {
  /** Jinja source; null takes the plain template. */
  readonly source: string | null;
  /** What templates know as bos_token and eos_token. */
  readonly beginText: string | null;
  readonly endText: string | null;
  readonly specials: SpecialTokens;
}

/** A template has refused the messages (`raise_exception`). */
class TemplateRefusal extends Error {
  override readonly name = 'TemplateRefusal';
}

/** A model's chat template: turns a conversation into the text that the model goes on from. */
export class ChatTemplate {
  readonly #template: Template;
  readonly #source: string;
  readonly #options: ChatTemplateOptions;
  /** Mistral's templates refuse ids of calls that are not nine letters or digits. */
  readonly #wantsShortIds: boolean;

  /** @throws Error when the source is not a template. */
  constructor(options: ChatTemplateOptions) {
    this.#source = options.source ?? plainTemplate;
    this.#template = new Template(prelude + this.#source);
    this.#options = options;
    this.#wantsShortIds = /length 9|\| ?length != 9/.test(this.#source);
  }

  /**
   * The prompt for the tokenizer. The template's control tokens are marked; whatever looks like one in the messages
   * is text. A template that cannot show tools gets them, and what was said through them, as text.
   * @throws ServiceError invalidParameter when the template refuses the messages.
   */
  render(messages: readonly Message[], tools: readonly Tool[] = []): string {
    const { specials, beginText, endText } = this.#options;
    const isShown = takesTools(this.#source);
    const said = knowsCalls(this.#source) ? messages : spellCalls(messages);
    const conversation = isShown || tools.length === 0 ? said : describeTools(said, tools);
    const shield = specials.shield([this.#source, JSON.stringify([conversation, tools])]);
    const idOf = this.#wantsShortIds ? shortId : (id: string) => id;
    try {
      const rendered = this.#template.render({
        messages: conversation.map((message, index) => templateMessage(message, { index, shield, idOf })),
        ...(isShown && tools.length > 0 && { tools: tools.map((tool) => templateTool(tool, shield)) }),
        add_generation_prompt: true,
        bos_token: beginText ?? '',
        eos_token: endText ?? '',
        refuse: (message: string) => {
          throw new TemplateRefusal(message);
        },
      });
      return shield.restore(specials.mark(rendered));
    } catch (error) {
      if (!(error instanceof TemplateRefusal)) throw error;
      throw new ServiceError('invalidParameter', `messages: ${shield.restore(error.message)}`);
    }
  }
}

/** A message as templates expect it: text content, and arguments of tool calls as values instead of JSON text. */
function templateMessage(
  message: Message,
  { index, shield, idOf }: { index: number; shield: SpecialShield; idOf: (id: string) => string },
): Record<string, unknown> {
  const { role } = message;
  const common = {
    role: role === 'developer' ? 'system' : role,
    content: shield.protect(textOf(message.content ?? '', index)),
    ...('name' in message && message.name !== undefined && { name: shield.protect(message.name) }),
  };
  if (role === 'assistant' && message.tool_calls !== undefined) {
    return { ...common, tool_calls: message.tool_calls.map((call) => templateToolCall(call, shield, idOf)) };
  }
  if (role === 'tool') return { ...common, tool_call_id: shield.protect(idOf(message.tool_call_id)) };
  return common;
}

function textOf(content: string | readonly ContentPart[], index: number): string {
  if (typeof content === 'string') return content;
  return content
    .map((part, position) => {
      if (part.type === 'text') return part.text;
      const place = `messages[${index}].content[${position}]`;
      throw new ServiceError('invalidParameter', `${place}: this model takes no images`);
    })
    .join('\n');
}

function templateTool(tool: Tool, shield: SpecialShield) {
  return { type: tool.type, function: protectDeep(signatureOf(tool), shield) };
}

/** Nine letters and digits that are the same for the same id. */
function shortId(id: string): string {
  return createHash('sha256').update(id).digest('hex').slice(0, 9);
}

function templateToolCall(
  { id, type, function: called }: ToolCall,
  shield: SpecialShield,
  idOf: (id: string) => string,
) {
  return {
    id: shield.protect(idOf(id)),
    type,
    function: {
      name: shield.protect(called.name),
      arguments: protectDeep(argumentsOf(called.arguments), shield),
    },
  };
}

/** The value of a call's arguments; what is not JSON stays the text it is. */
function argumentsOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function protectDeep(value: unknown, shield: SpecialShield): unknown {
  if (typeof value === 'string') return shield.protect(value);
  if (Array.isArray(value)) return value.map((item) => protectDeep(item, shield));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [shield.protect(key), protectDeep(item, shield)]),
  );
}
