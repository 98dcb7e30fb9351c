import { toolFormatOf } from '../../../src/worker/tools/tool-format.js';
import {
  hermesTemplate,
  mistralTemplate,
  severalLlamaTemplate,
  singleLlamaTemplate,
} from '../../support/tool-templates.js';

/** The formats of the supported families, as their templates tell them. */
export const formats = {
  hermes: toolFormatOf(hermesTemplate.source),
  llama: toolFormatOf(severalLlamaTemplate.source),
  singleLlama: toolFormatOf(singleLlamaTemplate.source),
  mistral: toolFormatOf(mistralTemplate.source),
};
