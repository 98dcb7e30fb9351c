import type { Tool } from '../../contract/chat.js';
import { literalToEbnf } from '../grammar/characters.js';
import { writeSchema } from '../grammar/json-grammar.js';
import type { RuleBook } from '../grammar/rule-book.js';
import type { ToolFormat } from './tool-format.js';

/** Calls in one reply: a model that has lost its way would call without end. */
const maxCalls = 32;

/** A tool, and its place in the request. */
export interface PlacedTool {
  readonly tool: Tool;
  readonly index: number;
}

/** Where the schema of a tool's arguments stands in the request. */
export function parametersPath(index: number): string {
  return `tools[${index}].function.parameters`;
}

export interface CallRules {
  readonly format: ToolFormat;
  readonly parallel: boolean;
  readonly book: RuleBook;
}

/** One call, and more where the request lets them, without the marker; returns the rule's name. */
export function writeCalls(tools: readonly PlacedTool[], { format, parallel, book }: CallRules): string {
  const calls = tools.map((tool) => writeCall(tool, format, book));
  const call = book.add('call', book.any(calls));
  const more = parallel && format.parallel ? ` (${format.between} ${call}){0,${maxCalls - 1}}` : '';
  return book.add('calls', `${format.open} ${call}${more} ${format.close}`);
}

function writeCall({ tool, index }: PlacedTool, { argumentsKey }: ToolFormat, book: RuleBook): string {
  const { name, parameters, strict } = tool.function;
  const path = parametersPath(index);
  // A function without parameters takes none.
  const schema = parameters ?? { type: 'object', additionalProperties: false };
  const place = { schema, path };
  const isObject = { schema: objects, path };
  const value = writeSchema(place, book, { strict: strict ?? false, besides: [isObject] });
  const head = `"{" " "? ${literalToEbnf('"name":')} " "? ${literalToEbnf(`"${name}"`)} "," " "?`;
  return `${head} ${literalToEbnf(`"${argumentsKey}":`)} " "? ${value} "}"`;
}

/** Arguments are always an object, whatever else the schema takes. */
const objects = { type: 'object' };

/** A reply that is nothing but calls. */
export function callsOnly(calls: string, { marker, bare }: ToolFormat): string {
  return bare ? `${literalToEbnf(marker)}? ${calls}` : `${literalToEbnf(marker)} ${calls}`;
}

/** A reply of any text; where it begins a call, the call is held to its function's schema, and ends the reply. */
export function textOrCalls(calls: string, format: ToolFormat, book: RuleBook): string {
  const { marker, bare } = format;
  const dispatch = `TagDispatch((${literalToEbnf(marker)}, ${calls}), stop_eos=true, stop_str=(), loop_after_dispatch=false)`;
  const text = book.add('text', dispatch);
  if (!bare) return text;
  // Only the first character tells a call: a text begins with anything but a brace, or a marker.
  const other = [
    `${anyByteBut(['{', marker[0]!])} ${text}`,
    `${literalToEbnf(marker[0]!)} (${anyByteBut([marker[1]!])} ${text})?`,
  ];
  return book.any([calls, `${literalToEbnf(marker)} ${calls}`, ...other, '""']);
}

/** A class of all bytes but those of a few ASCII characters. */
function anyByteBut(characters: readonly string[]): string {
  const left = characters.map((character) => character.charCodeAt(0)).sort((a, b) => a - b);
  const ranges = [...left, 0x100].map((byte, index) => [index === 0 ? 0 : left[index - 1]! + 1, byte - 1]);
  return `[${ranges.map(([first, last]) => `${byteOf(first!)}-${byteOf(last!)}`).join('')}]`;
}

function byteOf(byte: number): string {
  return `\\u${byte.toString(16).padStart(4, '0')}`;
}
