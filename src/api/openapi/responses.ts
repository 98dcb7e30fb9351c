import { type ErrorKind, errorTable, ServiceError } from '../../contract/errors.js';
import { refer } from './components.js';
import type { Example, ResponseObject } from './document.js';

/** Every error of an operation; unknown routes and methods are no operation's. */
export const operationErrors = (Object.keys(errorTable) as ErrorKind[]).filter(
  (kind) => kind !== 'routeNotFound' && kind !== 'methodNotAllowed',
);

export const requestIdHeader = {
  'x-request-id': { description: 'Names this request.', schema: { type: 'string' } },
};

export const timingHeaders = {
  'x-headrace-queue-ms': {
    description: 'Milliseconds until a worker took the request.',
    schema: { type: 'number' },
  },
  'x-headrace-first-token-ms': {
    description: 'Milliseconds until its first token or score; not on streams.',
    schema: { type: 'number' },
  },
};

/** Of the minute; left out where there is no such limit. */
export const limitHeaders = Object.fromEntries(
  (['requests', 'tokens'] as const)
    .flatMap((what) => [
      [`x-ratelimit-limit-${what}`, `The limit of ${what} in a minute, where there is one.`],
      [`x-ratelimit-remaining-${what}`, `What is left of it.`],
      [`x-ratelimit-reset-${what}`, `Seconds until the next minute begins.`],
    ])
    .map(([name, description]) => [name, { description, schema: { type: 'integer' } }]),
) as NonNullable<ResponseObject['headers']>;

const retryAfterHeader = {
  'retry-after': { description: 'Seconds to wait before trying again.', schema: { type: 'integer' } },
};

const authenticateHeader = {
  'www-authenticate': { description: 'How to say who you are: `Bearer`.', schema: { type: 'string' } },
};

/** One response per status, with the codes it may carry and an example of each. */
export function errorResponses(kinds: readonly ErrorKind[]): Record<string, ResponseObject> {
  const byStatus = new Map<number, ErrorKind[]>();
  for (const kind of kinds) {
    const { status } = errorTable[kind];
    byStatus.set(status, [...(byStatus.get(status) ?? []), kind]);
  }
  return Object.fromEntries(
    [...byStatus].map(([status, ofStatus]) => [status, errorResponse(status, ofStatus)]),
  );
}

function errorResponse(status: number, kinds: readonly ErrorKind[]): ResponseObject {
  const waits = kinds.some((kind) => errorTable[kind].retryable) && status !== 504;
  const example = (kind: ErrorKind): [string, Example] => [
    kind,
    {
      summary: `code ${errorTable[kind].code}`,
      value: new ServiceError(kind, exampleMessages[kind]).toBody(),
    },
  ];
  return {
    description: kinds.map((kind) => `\`${errorTable[kind].code}\`: ${errorTable[kind].message}`).join('\n'),
    headers: {
      ...requestIdHeader,
      ...(waits ? retryAfterHeader : {}),
      ...(status === errorTable.unauthorized.status ? authenticateHeader : {}),
    },
    content: {
      'application/json': { schema: refer('Error'), examples: Object.fromEntries(kinds.map(example)) },
    },
  };
}

/** Where a real message says more than the table. */
const exampleMessages: Partial<Record<ErrorKind, string>> = {
  invalidParameter: 'messages[0].role: must be one of "system", "developer", "user", "assistant", "tool"',
};
