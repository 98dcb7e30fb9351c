import { type DestinationStream, type Logger, pino } from 'pino';

export type { Logger };

/** Where secrets might stand in what is logged; they are cut out whatever the call site does. */
const secretPaths = ['req.headers.authorization', 'headers.authorization', 'authorization', 'key', '*.key'];

/** Structured logs, one JSON line each, to standard error unless `destination` says otherwise. */
export function createLogger(
  options: { level: string; name: string },
  destination: DestinationStream = pino.destination({ dest: 2, sync: true }),
): Logger {
  return pino(
    { level: options.level, name: options.name, redact: { paths: secretPaths, censor: '[redacted]' } },
    destination,
  );
}
