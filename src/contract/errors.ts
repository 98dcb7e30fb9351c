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

/** The body of every error response. */
export const errorBodySchema = z
  .object({ code: z.int(), message: z.string(), data: z.null() })
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
    return { code: errorTable[this.kind].code, message: this.message, data: null };
  }
}
