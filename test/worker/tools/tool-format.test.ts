import { describe, expect, it } from 'vitest';
import { knowsCalls, takesTools, toolFormatOf } from '../../../src/worker/tools/tool-format.js';
import {
  hermesTemplate,
  mistralTemplate,
  severalLlamaTemplate,
  singleLlamaTemplate,
} from '../../support/tool-templates.js';
import { readFixture } from '../support/fixture-model.js';

const chatMl = readFixture('decoder/llama-tied', 'chat_template.jinja');

describe('the format of calls', () => {
  it.each([
    ['Hermes and Qwen', hermesTemplate.source, { name: 'hermes', parallel: true }],
    ['Mistral', mistralTemplate.source, { name: 'mistral', parallel: true }],
    ['Llama 3', severalLlamaTemplate.source, { name: 'llama', parallel: true }],
    ['Llama 3, which refuses several calls', singleLlamaTemplate.source, { name: 'llama', parallel: false }],
    [
      'Llama 3, which only mentions its tag',
      "{{- '<|python_tag|>' + call.name }}",
      { name: 'llama', parallel: true },
    ],
    ['a template without calls', chatMl, { name: 'hermes', parallel: true }],
    ['no template', null, { name: 'hermes', parallel: true }],
  ])('is told by the template: %s', (_family, template, expected) => {
    expect(toolFormatOf(template)).toMatchObject(expected);
  });

  it('holds the arguments under the name that the family uses', () => {
    expect(toolFormatOf(severalLlamaTemplate.source).argumentsKey).toBe('parameters');
    expect(toolFormatOf(hermesTemplate.source).argumentsKey).toBe('arguments');
    expect(toolFormatOf(mistralTemplate.source).argumentsKey).toBe('arguments');
  });
});

describe('what a template can show', () => {
  it.each([
    ['tools and calls', hermesTemplate.source, true, true],
    ['tools and calls', mistralTemplate.source, true, true],
    ['tools and calls', singleLlamaTemplate.source, true, true],
    ['tools alone', '{{ tools | tojson }}', true, false],
    ['calls alone', '{{ message.tool_calls | tojson }}', false, true],
    ['neither', chatMl, false, false],
    ['neither', null, false, false],
  ])('%s', (_what, template, tools, calls) => {
    expect([takesTools(template), knowsCalls(template)]).toEqual([tools, calls]);
  });
});
