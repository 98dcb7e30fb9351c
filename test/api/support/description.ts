import { createConfig, lintFromString } from '@redocly/openapi-core';
import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { expect } from 'vitest';
import type { MediaType, OpenApiDocument, ResponseObject } from '../../../src/api/openapi/document.js';
import { dataOf } from './raw-responses.js';

/** A response, as `inject` gives it. */
interface Answer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

/** Headers that are between the server and caches, proxies or browsers, which no description names. */
const ownHeaders = new Set([
  'content-type',
  'content-length',
  'connection',
  'date',
  'keep-alive',
  'transfer-encoding',
  'cache-control',
  'vary',
  'content-security-policy',
  'x-accel-buffering',
]);

/** Holds values and whole responses to the description of the service, by its own schemas. */
export class Description {
  readonly document: OpenApiDocument;
  readonly #ajv = new Ajv2020.default({ strict: false, allErrors: true });
  readonly #validators = new Map<string, ValidateFunction>();

  constructor(document: OpenApiDocument) {
    this.document = document;
    addFormats.default(this.#ajv);
    this.#ajv.addSchema({ $id: 'openapi', components: document.components });
  }

  /** What is wrong with a value by a schema of the document; empty when nothing is. */
  errors(schema: unknown, value: unknown): string {
    const key = JSON.stringify(schema).replaceAll('"#/', '"openapi#/');
    const validate = this.#validators.get(key) ?? this.#ajv.compile(JSON.parse(key));
    this.#validators.set(key, validate);
    return validate(value) ? '' : this.#ajv.errorsText(validate.errors);
  }

  /** The same for the body of a message: JSON, a stream of events, or text. */
  bodyErrors(type: string, { schema }: MediaType, body: string): string {
    if (schema === undefined) return '';
    if (type === 'application/json') return this.errors(schema, JSON.parse(body));
    if (type === 'text/event-stream')
      return dataOf(body)
        .map((data) => this.#eventErrors(data))
        .join('');
    return this.errors(schema, body);
  }

  /** Every body has examples, and they fit its schema. */
  expectExamples(): void {
    const { paths, webhooks } = this.document;
    // A whole description, and a whole page, would be no examples.
    const selfExplaining = ['/openapi.json', '/docs'];
    const described = Object.entries({ ...paths, ...webhooks }).filter(
      ([path]) => !selfExplaining.includes(path),
    );
    for (const [path, methods] of described) {
      for (const { requestBody, responses } of Object.values(methods)) {
        const contents = [requestBody, ...Object.values(responses)].flatMap((each) =>
          Object.entries(each?.content ?? {}),
        );
        for (const [type, media] of contents) {
          const values = Object.values(media.examples ?? {}).map(({ value }) => value);
          expect(values, `${path} ${type}`).not.toEqual([]);
          for (const value of values) {
            const body = typeof value === 'string' ? value : JSON.stringify(value);
            expect(this.bodyErrors(type, media, body), `${path} ${type} ${body}`).toBe('');
          }
        }
      }
    }
  }

  /** What a linter would change. */
  async problems(): Promise<string[]> {
    const problems = await lintFromString({
      source: JSON.stringify(this.document),
      absoluteRef: '/openapi.json',
      config: await createConfig({ extends: ['recommended'] }),
    });
    return problems.map(
      ({ severity, ruleId, message, location }) =>
        `${severity} ${ruleId}: ${message} ${location[0]?.pointer}`,
    );
  }

  /** A response of an operation has the status, the headers, the type and the body that are described. */
  expectDescribed(path: string, method: 'get' | 'post', { statusCode, headers, body }: Answer): void {
    const what = `${method} ${path} ${statusCode}`;
    const response: ResponseObject | undefined = this.document.paths[path]?.[method]?.responses[statusCode];
    expect(response, what).toBeDefined();
    const [type = ''] = String(headers['content-type']).split(';');
    const media = response?.content?.[type];
    expect(media, `${what} ${type}`).toBeDefined();
    expect(this.bodyErrors(type, media!, body), `${what} ${body.slice(0, 500)}`).toBe('');
    for (const name of Object.keys(headers)) {
      if (!ownHeaders.has(name)) expect(Object.keys(response?.headers ?? {}), what).toContain(name);
    }
    for (const [name, { schema }] of Object.entries(response?.headers ?? {})) {
      const value = headers[name];
      if (value === undefined) continue;
      const parsed = schema['type'] === 'string' ? value : Number(value);
      expect(this.errors(schema, parsed), `${what} ${name}: ${value}`).toBe('');
    }
  }

  #eventErrors(data: string): string {
    const { ChatCompletionEvent: event } = this.document.components.schemas;
    const fits = this.errors({ $ref: '#/components/schemas/ChatCompletionEvent' }, { data });
    if (fits !== '' || data === '[DONE]') return fits;
    // What the string holds is an annotation, which validators leave to others.
    const alternatives = (event as { properties: { data: { anyOf: { contentSchema?: unknown }[] } } })
      .properties.data.anyOf;
    const errors = alternatives
      .filter(({ contentSchema }) => contentSchema !== undefined)
      .map(({ contentSchema }) => this.errors(contentSchema, JSON.parse(data)));
    return errors.includes('') ? '' : errors.join('; ');
  }
}
