import type { ToolFormat } from './tool-format.js';

/** What a piece of a reply's text turned out to be. */
export type ReplyPart =
  | { readonly type: 'content'; readonly text: string }
  /** A call has begun; calls are numbered from 0. */
  | { readonly type: 'call'; readonly index: number; readonly name: string }
  /** More of the JSON text of a call's arguments. */
  | { readonly type: 'arguments'; readonly index: number; readonly text: string };

/**
 * - start: nothing but white space yet; a bare call may begin.
 * - content: text for the reader.
 * - between: inside what stands around calls, up to the brace of the next one.
 * - head: inside a call, before its arguments.
 * - arguments: inside the arguments of a call.
 */
type State = 'start' | 'content' | 'between' | 'head' | 'arguments';

const head = /^\{\s*"name"\s*:\s*"([^"]*)"\s*,\s*"(?:arguments|parameters)"\s*:\s*(?=\{)/;

/** Takes the calls of tools out of a reply's text as it comes, wherever it is cut into pieces. */
export class ToolParser {
  readonly #format: ToolFormat;
  #state: State;
  /** Text that is not told apart yet. */
  #held = '';
  #calls = 0;
  #depth = 0;
  #inString = false;
  #escaped = false;

  /** @param onlyCalls The reply can hold nothing else: a marker that is cut off is no text. */
  constructor(format: ToolFormat, onlyCalls = false) {
    this.#format = format;
    this.#state = onlyCalls ? 'between' : 'start';
  }

  /** Calls that have begun. */
  get calls(): number {
    return this.#calls;
  }

  push(text: string): ReplyPart[] {
    this.#held += text;
    const parts: ReplyPart[] = [];
    while (this.#advance(parts)) {}
    return parts;
  }

  /** What remains once no more is to come: text that only might have begun a call. */
  flush(): ReplyPart[] {
    const text = this.#held;
    this.#held = '';
    const isText = this.#state === 'start' || this.#state === 'content';
    return isText && text !== '' ? [{ type: 'content', text }] : [];
  }

  /** Goes one state further; false when more text is needed for that. */
  #advance(parts: ReplyPart[]): boolean {
    switch (this.#state) {
      case 'start':
        return this.#start();
      case 'content':
        return this.#content(parts);
      case 'between':
        return this.#between();
      case 'head':
        return this.#head(parts);
      case 'arguments':
        return this.#arguments(parts);
      default:
        return this.#state satisfies never;
    }
  }

  /** White space before a call is not worth a content. */
  #start(): boolean {
    const { marker, bare } = this.#format;
    const text = this.#held.trimStart();
    if (text === '' || (marker.startsWith(text) && text.length < marker.length)) return false;
    if (text.startsWith(marker)) this.#enter('between', text.slice(marker.length));
    else if (bare && text.startsWith('{') && this.#held === text) this.#enter('between', text);
    else this.#state = 'content';
    return true;
  }

  #content(parts: ReplyPart[]): boolean {
    const { marker } = this.#format;
    const at = this.#held.indexOf(marker);
    const end = at === -1 ? this.#held.length - beginningLength(this.#held, marker) : at;
    if (end > 0) parts.push({ type: 'content', text: this.#held.slice(0, end) });
    this.#held = this.#held.slice(end);
    if (at === -1) return false;
    this.#enter('between', this.#held.slice(marker.length));
    return true;
  }

  #between(): boolean {
    const at = this.#held.indexOf('{');
    if (at === -1) {
      this.#held = '';
      return false;
    }
    this.#enter('head', this.#held.slice(at));
    return true;
  }

  #head(parts: ReplyPart[]): boolean {
    const match = head.exec(this.#held);
    if (match === null) return false;
    parts.push({ type: 'call', index: this.#calls, name: match[1]! });
    this.#calls++;
    this.#enter('arguments', this.#held.slice(match[0].length));
    return true;
  }

  #arguments(parts: ReplyPart[]): boolean {
    const end = this.#endOfObject();
    const text = this.#held.slice(0, end);
    if (text !== '') parts.push({ type: 'arguments', index: this.#calls - 1, text });
    if (end === undefined) {
      this.#held = '';
      return false;
    }
    this.#enter('between', this.#held.slice(end));
    return true;
  }

  /** Where the object that the arguments are ends in the held text. */
  #endOfObject(): number | undefined {
    for (let at = 0; at < this.#held.length; at++) {
      const character = this.#held[at]!;
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false;
        else if (character === '\\') this.#escaped = true;
        else if (character === '"') this.#inString = false;
        continue;
      }
      if (character === '"') this.#inString = true;
      else if (character === '{' || character === '[') this.#depth++;
      else if (character === '}' || character === ']') {
        this.#depth--;
        if (this.#depth === 0) return at + 1;
      }
    }
    return undefined;
  }

  #enter(state: State, held: string): void {
    this.#state = state;
    this.#held = held;
  }
}

/** Characters at the end of `text` that `marker` begins with. */
function beginningLength(text: string, marker: string): number {
  for (let length = Math.min(text.length, marker.length - 1); length > 0; length--) {
    if (text.endsWith(marker.slice(0, length))) return length;
  }
  return 0;
}
