import type { Expression } from './expression.js';
import { parsePattern } from './pattern.js';

const byte = '(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])';
const word = '[a-z0-9]+';
const label = '[a-z0-9]([a-z0-9-]{0,14}[a-z0-9])?';
const hostname = `${label}(\\.${label}){0,2}`;
const date =
  '[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))';
const time = '([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])';
const hexGroup = '[0-9a-f]{1,4}';

/**
 * What is written for the formats of JSON schema: texts that every validator takes, not all that some would (no 29
 * February, no IPv6 address in short form).
 */
const sources: Readonly<Record<string, string>> = {
  date: `^${date}$`,
  time: `^${time}$`,
  'date-time': `^${date}T${time}$`,
  duration: '^P([1-9][0-9]{0,2}D)?T([1-9][0-9]{0,2}H)?([1-9][0-9]{0,2}M)?[1-9][0-9]{0,2}S$',
  email: `^${word}([._+-]${word})*@${word}(-${word})*(\\.${word}(-${word})*)+$`,
  hostname: `^${hostname}$`,
  ipv4: `^${byte}\\.${byte}\\.${byte}\\.${byte}$`,
  ipv6: `^(${hexGroup}:){7}${hexGroup}$`,
  uri: `^https?://${word}(-${word})*(\\.${word}(-${word})*)*(/[A-Za-z0-9._~-]+)*/?(\\?[A-Za-z0-9=&_-]+)?$`,
  uuid: '^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$',
};

const otherNames: Readonly<Record<string, string>> = {
  'idn-email': 'email',
  'idn-hostname': 'hostname',
  iri: 'uri',
  'uri-reference': 'uri',
  'iri-reference': 'uri',
};

/** Formats that only say how to show or carry a text. */
export const annotationFormats: ReadonlySet<string> = new Set(['password', 'binary', 'textarea', 'color']);

export const formatNames: readonly string[] = [...Object.keys(sources), ...Object.keys(otherNames)];

/** The texts of a format; undefined when it is not known. */
export function formatExpression(format: string): Expression | undefined {
  const source = sourceOf(format);
  return source === undefined ? undefined : parsePattern(source);
}

/** Whether a text is among those that are written for a format. */
export function hasFormat(text: string, format: string): boolean {
  const source = sourceOf(format);
  return source !== undefined && new RegExp(source, 'u').test(text);
}

function sourceOf(format: string): string | undefined {
  const name = Object.hasOwn(otherNames, format) ? otherNames[format]! : format;
  return Object.hasOwn(sources, name) ? sources[name] : undefined;
}
