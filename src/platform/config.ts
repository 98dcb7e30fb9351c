import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { z } from 'zod';

/** An empty variable is the same as none: compose files and .env files write them so. */
function env<T extends z.ZodType>(schema: T) {
  return z.preprocess((value) => (value === '' ? undefined : value), schema);
}

const path = (fallback: string) => env(z.string().default(fallback)).transform((value) => resolve(value));
const integer = (min: number, max: number, fallback: number) =>
  env(
    z
      .string()
      .default(String(fallback))
      .refine((value) => /^\s*\d{1,15}\s*$/.test(value) && Number(value) >= min && Number(value) <= max, {
        error: ({ input }) => `must be an integer from ${min} to ${max}, not "${input}"`,
      })
      .transform(Number),
  );
const oneOf = <T extends string>(values: readonly [T, ...T[]], fallback: NoInfer<T>) =>
  env(
    z
      .enum(values, { error: ({ input }) => `must be one of ${values.join(', ')}, not "${input}"` })
      .default(fallback as never),
  );
const url = (protocols: readonly string[]) =>
  env(
    z
      .string()
      .refine((value) => protocols.some((protocol) => value.startsWith(`${protocol}://`)), {
        error: `must start with ${protocols.map((protocol) => `${protocol}://`).join(' or ')}`,
      })
      .optional(),
  );

/** Addresses and networks, with commas between; the names stand for what proxy-addr takes them for. */
const networks = env(
  z
    .string()
    .transform((value) => value.split(',').map((part) => part.trim()))
    .pipe(
      z.array(
        z.union(
          [z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6(), z.enum(['loopback', 'linklocal', 'uniquelocal'])],
          { error: 'must be IP addresses or networks (10.0.0.0/8) with commas between' },
        ),
      ),
    )
    .optional(),
);

/** Every environment variable that Headrace reads. README.md, "Configuration", explains each. */
const environmentSchema = z.object({
  HEADRACE_HOST: env(z.string().default('127.0.0.1')),
  HEADRACE_PORT: integer(0, 65_535, 8700),
  HEADRACE_DATA_DIR: path('.headrace'),
  HEADRACE_CACHE_DIR: path(join(homedir(), '.cache', 'headrace')),
  HEADRACE_MODELS: path('headrace.models.json'),
  HEADRACE_LOG_LEVEL: oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], 'info'),
  HEADRACE_BODY_LIMIT_MIB: integer(1, 1024, 16),
  HEADRACE_REQUEST_TIMEOUT_SECONDS: integer(1, 86_400, 600),
  HEADRACE_MAX_QUEUE_DEPTH: integer(1, 1_000_000, 10_000),
  HEADRACE_MAX_SEQUENCES: integer(1, 1024, 32),
  HEADRACE_LOCK_SECONDS: integer(2, 3_600, 10),
  HEADRACE_USAGE_RETENTION_DAYS: integer(1, 36_500, 90),
  HEADRACE_NOTICE_RETENTION_DAYS: integer(1, 36_500, 365),
  HEADRACE_AUDIT_RETENTION_DAYS: integer(1, 36_500, 730),
  HEADRACE_TRUST_PROXY: networks,
  HEADRACE_ADMIN_TOKEN: env(
    z
      .string()
      .min(16, 'must have at least 16 characters')
      .regex(/^\S*$/, 'must not contain spaces')
      .optional(),
  ),
  HEADRACE_PYTHON: env(z.string().default('python3')),
  HEADRACE_URL: env(z.string().optional()),
  HEADRACE_KEY: env(z.string().optional()),
  DATABASE_URL: url(['postgres', 'postgresql']),
  REDIS_URL: url(['redis', 'rediss']),
  HF_ENDPOINT: env(z.string().default('https://huggingface.co')),
  HF_TOKEN: env(z.string().optional()),
});

/** The settings of a process, parsed once. Paths are absolute. */
export interface Config {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  readonly dataDir: string;
  readonly cacheDir: string;
  readonly modelsFile: string;
  readonly logLevel: string;
  readonly bodyLimitBytes: number;
  readonly requestTimeoutMs: number;
  /** Jobs waiting for one model above which new requests are refused with `overloaded`. */
  readonly maxQueueDepth: number;
  /** Sequences one worker decodes together. */
  readonly maxSequences: number;
  /** A job whose worker is silent for this long is given to another. */
  readonly lockMs: number;
  /** For how long each request stays in the ledger, each notice (with its deliveries) and each entry of the audit log. */
  readonly retentionDays: { readonly usage: number; readonly notices: number; readonly audit: number };
  /** The addresses of proxies whose X-Forwarded-For is believed; undefined means that there are none. */
  readonly trustProxy: string[] | undefined;
  /** Whoever has it may use the administration over HTTP; undefined means that there is none. */
  readonly adminToken: string | undefined;
  readonly python: string;
  /** Where client commands send requests, and with which key; undefined means the local service's. */
  readonly url: string | undefined;
  readonly key: string | undefined;
  /** Undefined means the embedded Postgres. */
  readonly databaseUrl: string | undefined;
  /** Undefined means that Postgres carries the queue and the channel. */
  readonly redisUrl: string | undefined;
  readonly hubUrl: string;
  readonly hubToken: string | undefined;
}

/** A setting is wrong; the message names the variable. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/**
 * Reads the environment. The only reader of process.env.
 * @throws ConfigError naming every variable that is wrong.
 */
export function loadConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const parsed = environmentSchema.safeParse(environment);
  if (!parsed.success) {
    throw new ConfigError(
      parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('\n'),
    );
  }
  const values = parsed.data;
  return {
    host: values.HEADRACE_HOST,
    port: values.HEADRACE_PORT,
    dataDir: values.HEADRACE_DATA_DIR,
    cacheDir: values.HEADRACE_CACHE_DIR,
    modelsFile: values.HEADRACE_MODELS,
    logLevel: values.HEADRACE_LOG_LEVEL,
    bodyLimitBytes: values.HEADRACE_BODY_LIMIT_MIB * 1024 * 1024,
    requestTimeoutMs: values.HEADRACE_REQUEST_TIMEOUT_SECONDS * 1000,
    maxQueueDepth: values.HEADRACE_MAX_QUEUE_DEPTH,
    maxSequences: values.HEADRACE_MAX_SEQUENCES,
    retentionDays: {
      usage: values.HEADRACE_USAGE_RETENTION_DAYS,
      notices: values.HEADRACE_NOTICE_RETENTION_DAYS,
      audit: values.HEADRACE_AUDIT_RETENTION_DAYS,
    },
    lockMs: values.HEADRACE_LOCK_SECONDS * 1000,
    trustProxy: values.HEADRACE_TRUST_PROXY,
    adminToken: values.HEADRACE_ADMIN_TOKEN,
    python: values.HEADRACE_PYTHON,
    url: values.HEADRACE_URL,
    key: values.HEADRACE_KEY,
    databaseUrl: values.DATABASE_URL,
    redisUrl: values.REDIS_URL,
    hubUrl: values.HF_ENDPOINT,
    hubToken: values.HF_TOKEN,
  };
}
