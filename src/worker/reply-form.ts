import type { Tool } from '../contract/chat.js';
import { ServiceError } from '../contract/errors.js';
import type { ChatJob } from '../contract/job.js';
import type { Grammar } from '../engine/grammar.js';
import { writeSchema } from './grammar/json-grammar.js';
import { RuleBook } from './grammar/rule-book.js';
import type { ToolFormat } from './tools/tool-format.js';
import { callsOnly, type PlacedTool, textOrCalls, writeCalls } from './tools/tool-grammar.js';

/** What a job says of the form of its reply. */
export type ReplyForm = Pick<ChatJob, 'responseFormat' | 'tools' | 'toolChoice' | 'parallelToolCalls'>;

/** Where the schema of a reply stands in the request. */
export const schemaPath = 'response_format.json_schema.schema';

/** Whether the form leaves no choice: any text will do. */
export function isFree(form: ReplyForm): boolean {
  const { responseFormat } = form;
  return toolsInUse(form).length === 0 && (responseFormat === undefined || responseFormat.type === 'text');
}

/** Whether the reply must be calls and nothing else. */
export function requiresCalls({ toolChoice = 'auto' }: ReplyForm): boolean {
  return toolChoice !== 'auto' && toolChoice !== 'none';
}

/**
 * The tools that the reply may call, with their places.
 * @throws ServiceError invalidParameter when the one that is named is not there.
 */
export function toolsInUse({ tools = [], toolChoice = 'auto' }: ReplyForm): PlacedTool[] {
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

/**
 * The grammar of the replies of a form that is not free, with calls written in `format`.
 * @throws SchemaRefusal naming the place of a schema that cannot be honoured.
 */
export function writeReplyGrammar(form: ReplyForm, format: ToolFormat): Grammar {
  const book = new RuleBook();
  const content = writeContent(form, book);
  const tools = toolsInUse(form);
  if (tools.length === 0) return book.grammar(content ?? 'value');
  // Who names the function wants one call of it.
  const parallel = typeof form.toolChoice !== 'object' && (form.parallelToolCalls ?? true);
  const calls = writeCalls(tools, { format, parallel, book });
  if (requiresCalls(form)) return book.grammar(callsOnly(calls, format));
  if (content !== undefined) return book.grammar(book.any([content, callsOnly(calls, format)]));
  return book.grammar(textOrCalls(calls, format, book));
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
