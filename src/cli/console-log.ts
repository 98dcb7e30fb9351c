import { prettyFactory } from 'pino-pretty';
import type { Terminal } from './client/terminal.js';

/** Takes structured log lines, one JSON object each, with or without their line break. */
export interface LogLines {
  write(line: string): void;
}

/** Log lines on standard error: as they are, or on a terminal in a form for people. Written on the spot. */
export function createLogLines({ stderr }: Pick<Terminal, 'stderr'>): LogLines {
  if (!stderr.isTTY) return { write: (line) => void stderr.write(line.endsWith('\n') ? line : `${line}\n`) };
  const format = prettyFactory({
    colorize: true,
    translateTime: 'SYS:HH:MM:ss',
    ignore: 'pid,hostname,name',
    singleLine: true,
  });
  return { write: (line) => void stderr.write(format(line.trimEnd())) };
}
