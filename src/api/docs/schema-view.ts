import type { JsonSchema } from '../openapi/document.js';
import { type Html, html, prose } from './html.js';

/** A field of an object, or of an object inside it. */
interface Field {
  readonly path: string;
  readonly required: boolean;
  readonly schema: JsonSchema;
}

/** Where the fields of a schema with this name are listed on the page. */
export function schemaAnchor(name: string): string {
  return `schema-${name}`;
}

/** The fields of a schema as a table; one per alternative when it is a union of objects. */
export function schemaView(schema: JsonSchema): Html {
  const alternatives = list(schema['oneOf'] ?? schema['anyOf']);
  if (alternatives.length > 0) return html`${alternatives.map((alternative) => fieldTable(alternative))}`;
  return fieldTable(schema);
}

function fieldTable(schema: JsonSchema): Html {
  const fields = fieldsOf(schema, '');
  if (fields.length === 0) return html`<p>${typeView(schema)}</p>`;
  return html`<div class="scroll"><table>
<thead><tr><th scope="col">Field</th><th scope="col">Type</th><th scope="col">Meaning</th></tr></thead>
<tbody>${fields.map(fieldRow)}</tbody></table></div>`;
}

function fieldRow({ path, required, schema }: Field): Html {
  const { description, default: fallback } = schema;
  return html`<tr><th scope="row"><code>${path}</code>${required && html` <small class="required">required</small>`}</th>
<td>${typeView(schema)}</td>
<td>${typeof description === 'string' && prose(description)}${
    fallback !== undefined && html` <small>Default: <code>${JSON.stringify(fallback)}</code></small>`
  }</td></tr>`;
}

/** Fields in the order of the schema; objects that have no name of their own are opened in place. */
function fieldsOf(schema: JsonSchema, prefix: string): Field[] {
  const properties = Object.entries((schema['properties'] ?? {}) as Record<string, JsonSchema>);
  const required = new Set(schema['required'] as readonly string[] | undefined);
  return properties.flatMap(([name, property]) => {
    const path = prefix + name;
    const inner = withoutNull(property);
    return [
      { path, required: required.has(name), schema: property },
      ...fieldsOf(inner, `${path}.`),
      ...fieldsOf((inner['items'] ?? {}) as JsonSchema, `${path}[].`),
    ];
  });
}

/** The name of the schema that one refers to, and says nothing else. */
export function refersTo(schema: JsonSchema): string | undefined {
  const reference = schema['$ref'];
  return typeof reference === 'string' ? reference.slice(reference.lastIndexOf('/') + 1) : undefined;
}

/** What values fit, in words; names lead to where they are explained. */
export function typeView(schema: JsonSchema): Html {
  const name = refersTo(schema);
  if (name !== undefined) return html`<a href="#${schemaAnchor(name)}">${name}</a>`;
  const inText = schema['contentSchema'];
  if (inText !== undefined) {
    const { type, items } = inText as JsonSchema;
    if (type === 'array') return html`events, each a ${typeView(items as JsonSchema)}`;
    return html`${typeView(inText as JsonSchema)} as JSON text`;
  }
  const alternatives = list(schema['anyOf'] ?? schema['oneOf']).filter(({ type }) => type !== 'null');
  if (alternatives.length > 0) return joined(alternatives.map(typeView));
  const values = schema['const'] === undefined ? list(schema['enum']) : [schema['const']];
  if (values.length > 0) return joined(values.map((value) => html`<code>${JSON.stringify(value)}</code>`));
  const type = [schema['type'] ?? 'any value'].flat().filter((name) => name !== 'null');
  if (type[0] === 'array')
    return html`array of ${typeView((schema['items'] ?? {}) as JsonSchema)}${rangeOf(schema)}`;
  return html`${type.join(' or ')}${rangeOf(schema)}`;
}

function rangeOf(schema: JsonSchema): string | undefined {
  const bound = (...names: readonly string[]) => names.map((name) => schema[name]).find(isTelling);
  const [above, below] = [bound('exclusiveMinimum'), bound('exclusiveMaximum')];
  const [least, most] = [
    bound('minimum', 'minLength', 'minItems'),
    bound('maximum', 'maxLength', 'maxItems'),
  ];
  const rules = [
    above !== undefined && `more than ${above}`,
    least !== undefined && `at least ${least}`,
    most !== undefined && `at most ${most}`,
    below !== undefined && `less than ${below}`,
    typeof schema['pattern'] === 'string' && `matches ${schema['pattern']}`,
  ].filter((rule) => rule !== false);
  if (rules.length === 0) return undefined;
  const unit = schema['type'] === 'string' && least !== undefined ? ' long' : '';
  return `, ${rules.join(', ')}${unit}`;
}

/** The range of safe integers is every integer's, and says nothing about a field. */
function isTelling(bound: unknown): bound is number {
  return typeof bound === 'number' && Math.abs(bound) < Number.MAX_SAFE_INTEGER;
}

function withoutNull(schema: JsonSchema): JsonSchema {
  const alternatives = list(schema['anyOf']).filter(({ type }) => type !== 'null');
  return alternatives.length === 1 ? alternatives[0]! : schema;
}

function joined(parts: readonly Html[]): Html {
  return html`${parts.map((part, i) => (i === 0 ? part : html` or ${part}`))}`;
}

function list(value: unknown): JsonSchema[] {
  return Array.isArray(value) ? value : [];
}
