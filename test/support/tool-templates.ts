/** A chat template in the manner of a model family, and the control token that begins calls there. */
export interface ToolTemplate {
  readonly source: string;
  readonly marker: string;
}

const turn = (role: string, content: string) =>
  `{{- '<|im_start|>' + ${role} + '\\n' + ${content} + '<|im_end|>\\n' }}`;
const generation = `{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}`;

/** As Qwen's and Hermes's: every call between tags of its own. */
export const hermesTemplate: ToolTemplate = {
  marker: '<tool_call>',
  source: [
    `{%- if tools %}{{- '<|im_start|>system\\n<tools>' }}`,
    `{%- for tool in tools %}{{- '\\n' + (tool | tojson) }}{%- endfor %}`,
    `{{- '\\n</tools>\\n<tool_call>\\n{"name": <function-name>, "arguments": <args-json-object>}\\n</tool_call>' }}`,
    `{{- '<|im_end|>\\n' }}{%- endif %}`,
    `{%- for message in messages %}`,
    `{%- if message.role == 'tool' %}`,
    turn(`'user'`, `'<tool_response>\\n' + message.content + '\\n</tool_response>'`),
    `{%- elif message.tool_calls %}`,
    `{{- '<|im_start|>assistant' }}`,
    `{%- for call in message.tool_calls %}`,
    `{{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}`,
    `{{- (call.function.arguments | tojson) + '}\\n</tool_call>' }}`,
    `{%- endfor %}{{- '<|im_end|>\\n' }}`,
    `{%- else %}`,
    turn('message.role', 'message.content'),
    `{%- endif %}{%- endfor %}`,
    generation,
  ].join('\n'),
};

/** As Llama 3's: a reply that is a call is nothing else, and says so by its first character. */
function llamaTemplate(refusesSeveral: boolean): ToolTemplate {
  const refusal = `{%- if message.tool_calls | length != 1 %}{{- raise_exception('This model only supports single tool-calls at once!') }}{%- endif %}`;
  return {
    marker: '<|python_tag|>',
    source: [
      `{%- for message in messages %}`,
      `{%- if message.role == 'tool' %}`,
      turn(`'ipython'`, '(message.content | tojson)'),
      `{%- elif message.tool_calls is defined %}`,
      ...(refusesSeveral ? [refusal] : []),
      `{{- '<|im_start|>assistant\\n' }}`,
      `{%- for call in message.tool_calls %}`,
      `{{- ('' if loop.first else '; ') + '{"name": "' + call.function.name + '", ' }}`,
      `{{- '"parameters": ' + (call.function.arguments | tojson) + '}' }}`,
      `{%- endfor %}{{- '<|im_end|>\\n' }}`,
      `{%- elif message.role == 'user' and tools is defined and loop.last %}`,
      `{{- '<|im_start|>user\\nAnswer with JSON for a function call. ' }}`,
      `{{- 'Respond in the format {"name": function name, "parameters": dictionary of argument name and its value}.' }}`,
      `{%- for tool in tools %}{{- '\\n\\n' + (tool | tojson) }}{%- endfor %}`,
      `{{- '\\n\\n' + message.content + '<|im_end|>\\n' }}`,
      `{%- else %}`,
      turn('message.role', 'message.content'),
      `{%- endif %}{%- endfor %}`,
      generation,
    ].join('\n'),
  };
}

/** Refuses a message with several calls, as the template of the model's authors does. */
export const singleLlamaTemplate = llamaTemplate(true);
export const severalLlamaTemplate = llamaTemplate(false);

/** As Mistral's: calls are an array behind one mark, and their ids are nine letters and digits. */
export const mistralTemplate: ToolTemplate = {
  marker: '[TOOL_CALLS]',
  source: [
    `{{- bos_token }}`,
    `{%- for message in messages %}`,
    `{%- if message.role == 'user' %}`,
    `{%- if tools is not none and tools is defined and loop.last %}{{- '[AVAILABLE_TOOLS] ' + (tools | tojson) + '[/AVAILABLE_TOOLS]' }}{%- endif %}`,
    `{{- '[INST] ' + message.content + '[/INST]' }}`,
    `{%- elif message.tool_calls is defined %}`,
    `{{- '[TOOL_CALLS] [' }}`,
    `{%- for call in message.tool_calls %}`,
    `{%- if call.id | length != 9 %}{{- raise_exception('Tool call IDs should be alphanumeric strings with length 9!') }}{%- endif %}`,
    `{{- ('' if loop.first else ', ') + '{"name": "' + call.function.name + '", "arguments": ' }}`,
    `{{- (call.function.arguments | tojson) + ', "id": "' + call.id + '"}' }}`,
    `{%- endfor %}{{- ']' + eos_token }}`,
    `{%- elif message.role == 'tool' %}`,
    `{%- if message.tool_call_id | length != 9 %}{{- raise_exception('Tool call IDs should be alphanumeric strings with length 9!') }}{%- endif %}`,
    `{{- '[TOOL_RESULTS] {"content": ' + (message.content | tojson) + ', "call_id": "' + message.tool_call_id + '"}[/TOOL_RESULTS]' }}`,
    `{%- else %}`,
    `{{- ' ' + message.content + eos_token }}`,
    `{%- endif %}{%- endfor %}`,
  ].join('\n'),
};
