import { z } from 'zod';

/**
 * Every error the service answers with: the HTTP status, the code in the body, whether the same request may
 * succeed later, and the message used where the place that fails has nothing better to say.
 */
export const errorTable = {
  modelNotFound: {
    status: 400,
    code: 20012,
    retryable: false,
    message: 'Model does not exist. Please check it carefully.',
  },
  invalidParameter: { status: 400, code: 20015, retryable: false, message: 'A parameter is invalid.' },
  unauthorized: { status: 401, code: 20001, retryable: false, message: 'The API key is missing or wrong.' },
  accountDisabled: { status: 403, code: 30002, retryable: false, message: 'This account is disabled.' },
  modelNotOpen: {
    status: 403,
    code: 30003,
    retryable: false,
    message: 'This model is not open to this account.',
  },
  verificationRequired: {
    status: 403,
    code: 30005,
    retryable: false,
    message: 'This model requires real-name verification.',
  },
  routeNotFound: { status: 404, code: 20404, retryable: false, message: 'There is no such route.' },
  methodNotAllowed: {
    status: 405,
    code: 20405,
    retryable: false,
    message: 'This route does not take this method.',
  },
  idempotencyConflict: {
    status: 409,
    code: 20409,
    retryable: false,
    message: 'This Idempotency-Key was sent with another request.',
  },
  bodyTooLarge: {
    status: 413,
    code: 20042,
    retryable: false,
    message: 'The body is larger than this service takes.',
  },
  unsupportedMediaType: {
    status: 415,
    code: 20415,
    retryable: false,
    message: 'The body must be JSON, with content-type application/json.',
  },
  rpmLimit: { status: 429, code: 50601, retryable: true, message: rateLimited('RPM') },
  tpmLimit: { status: 429, code: 50602, retryable: true, message: rateLimited('TPM') },
  ipmLimit: { status: 429, code: 50604, retryable: true, message: rateLimited('IPM') },
  ipdLimit: { status: 429, code: 50605, retryable: true, message: rateLimited('IPD') },
  tpdLimit: { status: 429, code: 50606, retryable: true, message: rateLimited('TPD') },
  rpdLimit: { status: 429, code: 50608, retryable: true, message: rateLimited('RPD') },
  internal: { status: 500, code: 50500, retryable: false, message: 'Unknown error.' },
  overloaded: {
    status: 503,
    code: 50505,
    retryable: true,
    message: 'Model service overloaded. Please try again later.',
  },
  deadlineExceeded: {
    status: 504,
    code: 50504,
    retryable: true,
    message: "The request's deadline passed before it was answered.",
  },
} as const satisfies Record<string, { status: number; code: number; retryable: boolean; message: string }>;

function rateLimited(limit: string): string {
  return `Request was rejected due to rate limiting. Details: ${limit} limit reached.`;
}

/** The name of a row of {@link errorTable}. */
export type ErrorKind = keyof typeof errorTable;

export const errorKindSchema = z.enum(Object.keys(errorTable) as [ErrorKind, ...ErrorKind[]]);

const openAiErrorTypes = [
  'invalid_request_error',
  'authentication_error',
  'permission_error',
  'rate_limit_error',
  'server_error',
] as const;

/** The body of every error response, and of the event that ends a stream which failed. */
export const errorBodySchema = z
  .object({
    code: z.int(),
    message: z.string(),
    data: z.null(),
    error: z
      .object({
        message: z.string(),
        type: z.enum(openAiErrorTypes),
        param: z
          .string()
          .nullable()
          .meta({ description: 'The path of the parameter that is wrong: `messages[0].role`.' }),
        code: z.string().nullable(),
      })
      .meta({ description: "The same in the shape that clients of OpenAI's API read." }),
  })
  .meta({ id: 'Error', description: 'The body of every error response.' });
export type ErrorBody = z.infer<typeof errorBodySchema>;

/**
 * An error meant for the client. Anything else that is thrown is a bug or an outage, and the client sees only
 * `internal`.
 */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly kind: ErrorKind;
  /** Seconds for the Retry-After header; 429 and 503 always carry one. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    kind: ErrorKind,
    message: string = errorTable[kind].message,
    options: { cause?: unknown; retryAfterSeconds?: number } = {},
  ) {
    super(message, { cause: options.cause });
    this.kind = kind;
    const { status } = errorTable[kind];
    this.retryAfterSeconds = options.retryAfterSeconds ?? (status === 429 || status === 503 ? 1 : undefined);
  }

  get status(): number {
    return errorTable[this.kind].status;
  }

  toBody(): ErrorBody {
    const { kind, message, status } = this;
    const type = openAiTypeOf(status);
    const error = { message, type, param: parameterOf(kind, message), code: openAiCodeOf(kind, type) };
    return { code: errorTable[kind].code, message, data: null, error };
  }
}

function openAiTypeOf(status: number): ErrorBody['error']['type'] {
  if (status >= 500) return 'server_error';
  switch (status) {
    case 401:
      return 'authentication_error';
    case 403:
      return 'permission_error';
    case 429:
      return 'rate_limit_error';
    default:
      return 'invalid_request_error';
  }
}

/** Only the codes that OpenAI's API has for the same thing, since programs compare them. */
function openAiCodeOf(kind: ErrorKind, type: ErrorBody['error']['type']): string | null {
  if (kind === 'modelNotFound') return 'model_not_found';
  if (kind === 'unauthorized') return 'invalid_api_key';
  return type === 'rate_limit_error' ? 'rate_limit_exceeded' : null;
}

/** A path as messages begin with it: names, `.name`, `[0]` and `["any name"]`. */
const leadingPath = /^[\w$-]+(?:\.[\w$-]+|\[\d+\]|\["(?:[^"\\]|\\.)*"\])*(?=: )/s;
/** What messages begin with where the fault is in no parameter. */
const noParameters = new Set(['body', 'request', 'method', 'headers', 'headers.host']);

function parameterOf(kind: ErrorKind, message: string): string | null {
  if (kind === 'modelNotFound') return 'model';
  const path = kind === 'invalidParameter' ? leadingPath.exec(message)?.[0] : undefined;
  return path === undefined || noParameters.has(path) ? null : path;
}
