/** How a model family writes the calls of tools. */
export interface ToolFormat {
  readonly name: 'hermes' | 'llama' | 'mistral';
  /** Begins calls, behind whatever text; control tokens of this spelling count as text where tools may be called. */
  readonly marker: string;
  /** Whether a reply that begins with a brace is a call, without the marker. */
  readonly bare: boolean;
  /** The member of a call that holds the arguments. */
  readonly argumentsKey: 'arguments' | 'parameters';
  /** What stands around calls, in EBNF: behind the marker, between two calls, behind the last. */
  readonly open: string;
  readonly between: string;
  readonly close: string;
  /** Whether one reply may hold several calls. */
  readonly parallel: boolean;
}

/** `<tool_call>{"name": ..., "arguments": ...}</tool_call>`: Hermes, Qwen, and models that know no format. */
const hermes: ToolFormat = {
  name: 'hermes',
  marker: '<tool_call>',
  bare: false,
  argumentsKey: 'arguments',
  open: '"\\n"?',
  between: '"\\n"? "</tool_call>" "\\n"? "<tool_call>" "\\n"?',
  close: '"\\n"? "</tool_call>"',
  parallel: true,
};

/** `{"name": ..., "parameters": ...}`, with or without `<|python_tag|>`: Llama 3. */
const llama: ToolFormat = {
  name: 'llama',
  marker: '<|python_tag|>',
  bare: true,
  argumentsKey: 'parameters',
  open: '""',
  between: '"; "',
  close: '""',
  parallel: true,
};

/** `[TOOL_CALLS][{"name": ..., "arguments": ...}]`: Mistral. */
const mistral: ToolFormat = {
  name: 'mistral',
  marker: '[TOOL_CALLS]',
  bare: false,
  argumentsKey: 'arguments',
  open: '" "? "["',
  between: '"," " "?',
  close: '"]"',
  parallel: true,
};

/** The format that a chat template writes earlier calls in; Hermes where it writes none. */
export function toolFormatOf(template: string | null): ToolFormat {
  const source = template ?? '';
  if (source.includes(mistral.marker)) return mistral;
  if (source.includes(hermes.marker)) return hermes;
  if (source.includes(llama.marker) || /"name": [^\n]*"parameters":/.test(source)) {
    // Its authors' template refuses a message with several calls.
    return { ...llama, parallel: !source.includes('single tool-call') };
  }
  return hermes;
}

/** The format beside a text that is JSON itself: only the marker tells a call from it. */
export function besideJson(format: ToolFormat): ToolFormat {
  return { ...format, bare: false };
}

/** Whether a chat template shows the model which tools there are. */
export function takesTools(template: string | null): boolean {
  return /\btools\b/.test(template ?? '');
}

/** Whether a chat template shows the calls that were made. */
export function knowsCalls(template: string | null): boolean {
  return /\btool_calls\b/.test(template ?? '');
}
