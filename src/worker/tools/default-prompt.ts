import type { Message, Tool, ToolCall } from '../../contract/chat.js';

/**
 * What models that Hermes and Qwen's format comes from are told of tools (Nous Research, "Hermes Function Calling"),
 * in fewer words: it is part of every prompt.
 */
function promptForTools(tools: readonly Tool[]): string {
  const signatures = tools.map((tool) => JSON.stringify(signatureOf(tool)));
  return [
    'You can call these functions:',
    '<tools>',
    ...signatures,
    '</tools>',
    'To call one, write:',
    '<tool_call>',
    '{"name": <name>, "arguments": <object>}',
    '</tool_call>',
  ].join('\n');
}

/** What the model is told of a function. */
export function signatureOf({ function: { name, description, parameters } }: Tool) {
  return {
    name,
    ...(description !== undefined && { description }),
    parameters: parameters ?? { type: 'object', properties: {} },
  };
}

/** The conversation with calls and their results as text, for a template that knows only text. */
export function spellCalls(messages: readonly Message[]): Message[] {
  const spelled: Message[] = [];
  let results: string[] = [];
  const giveResults = () => {
    if (results.length > 0) spelled.push({ role: 'user', content: results.join('\n') });
    results = [];
  };
  for (const message of messages) {
    if (message.role === 'tool') {
      results.push(`<tool_response>\n${textOf(message.content)}\n</tool_response>`);
      continue;
    }
    giveResults();
    if (message.role !== 'assistant' || message.tool_calls === undefined) {
      spelled.push(message);
      continue;
    }
    const text = message.content == null ? [] : [textOf(message.content)].filter((content) => content !== '');
    spelled.push({ role: 'assistant', content: [...text, ...message.tool_calls.map(spellCall)].join('\n') });
  }
  giveResults();
  return spelled;
}

function spellCall({ function: { name, arguments: text } }: ToolCall): string {
  return `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": ${text}}\n</tool_call>`;
}

/**
 * The conversation with the tools in its system message, for a template that cannot show them: behind what the first
 * message says where it is one, else in a message of its own.
 */
export function describeTools(messages: readonly Message[], tools: readonly Tool[]): Message[] {
  const prompt = promptForTools(tools);
  const [first, ...others] = messages;
  if (first?.role !== 'system' && first?.role !== 'developer') {
    return [{ role: 'system', content: prompt }, ...messages];
  }
  return [{ ...first, content: `${textOf(first.content)}\n\n${prompt}` }, ...others];
}

function textOf(content: NonNullable<Message['content']>): string {
  if (typeof content === 'string') return content;
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('\n');
}
