export type JsonSchema = Readonly<Record<string, unknown>>;

export interface Example {
  readonly summary?: string;
  readonly value: unknown;
}

export interface MediaType {
  readonly schema?: JsonSchema;
  readonly examples?: Readonly<Record<string, Example>>;
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly description: string;
  readonly schema: JsonSchema;
}

export interface ResponseObject {
  readonly description: string;
  readonly headers?: Readonly<Record<string, { description: string; schema: JsonSchema }>>;
  readonly content?: Readonly<Record<string, MediaType>>;
}

export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly security?: readonly Record<string, readonly string[]>[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly required: boolean;
    readonly content: Readonly<Record<string, MediaType>>;
  };
  readonly responses: Readonly<Record<string, ResponseObject>>;
}

/** What this service uses of OpenAPI 3.1. */
export interface OpenApiDocument {
  readonly openapi: '3.1.0';
  readonly info: {
    title: string;
    version: string;
    description: string;
    license: { name: string; identifier: string };
  };
  readonly servers: readonly { url: string }[];
  readonly tags: readonly { name: string; description: string }[];
  readonly security: readonly Record<string, readonly string[]>[];
  readonly paths: Readonly<
    Record<string, Readonly<Partial<Record<'get' | 'post' | 'patch' | 'delete', Operation>>>>
  >;
  /** Requests that the service sends. */
  readonly webhooks: Readonly<Record<string, { readonly post: Operation }>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly securitySchemes: Readonly<Record<string, { type: string; scheme: string; description: string }>>;
  };
}
