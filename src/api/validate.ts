import type { z } from 'zod';
import { ServiceError } from '../contract/errors.js';

type Issue = z.core.$ZodIssue;

/**
 * Parses a request with a schema of the contract.
 *
 * @param where What the message starts with when the value as a whole is wrong.
 * @throws ServiceError invalidParameter; its message is the path of the first wrong parameter and what it must be.
 */
export function validate<T extends z.ZodType>(schema: T, value: unknown, where = 'body'): z.output<T> {
  const parsed = schema.safeParse(value, { error: describe });
  if (parsed.success) return parsed.data;
  const issue = innermost(parsed.error.issues[0]!);
  throw new ServiceError('invalidParameter', `${formatPath(issue.path, where)}: ${issue.message}`);
}

/** `messages[0].role`; keys that are no identifiers stand in brackets and quotes. */
export function formatPath(path: readonly PropertyKey[], where: string): string {
  let text = '';
  for (const key of path) {
    const name = String(key).slice(0, 100);
    if (typeof key === 'number') text += `[${key}]`;
    else if (/^[A-Za-z_$][\w$]*$/.test(name)) text += text === '' ? name : `.${name}`;
    else text += `[${JSON.stringify(name)}]`;
  }
  return text === '' ? where : text;
}

/**
 * A union that did not match says what it takes. Where one of its branches is wrong only further inside, that branch
 * was meant, and says more.
 */
function innermost(issue: Issue): Issue {
  if (issue.code === 'invalid_key') {
    const [inner] = issue.issues;
    return inner === undefined ? issue : { ...inner, path: issue.path };
  }
  if (issue.code !== 'invalid_union') return issue;
  const meant = issue.errors.map((issues) => issues[0]!).find(({ path }) => path.length > 0);
  if (meant === undefined) return issue;
  const inner = innermost(meant);
  return { ...inner, path: [...issue.path, ...inner.path] };
}

/** What a value must be, for issues that the schema has no words of its own for. */
function describe(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      if (issue.input === undefined) return 'is required';
      return `must be ${typeNames[issue.expected] ?? issue.expected}, not ${typeOf(issue.input)}`;
    case 'too_small':
      if (issue.origin === 'string' || issue.origin === 'array') {
        return Number(issue.minimum) === 1
          ? 'must not be empty'
          : `must have at least ${issue.minimum} elements`;
      }
      return issue.inclusive ? `must be at least ${issue.minimum}` : `must be greater than ${issue.minimum}`;
    case 'too_big':
      if (issue.origin === 'string') return `must have at most ${issue.maximum} characters`;
      if (issue.origin === 'array') return `must have at most ${issue.maximum} elements`;
      return issue.inclusive ? `must be at most ${issue.maximum}` : `must be less than ${issue.maximum}`;
    case 'invalid_value':
      if (issue.input === undefined) return 'is required';
      return `must be ${listed(issue.values)}`;
    case 'invalid_union':
      if (issue['options'] === undefined) return 'is not valid';
      return `must be ${listed(issue['options'] as unknown[])}`;
    default:
      return 'is not valid';
  }
}

const typeNames: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  int: 'an integer',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
  record: 'an object',
};

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return typeNames[typeof value] ?? typeof value;
}

function listed(values: readonly unknown[]): string {
  const texts = values.map((value) => JSON.stringify(value));
  return texts.length === 1 ? texts[0]! : `one of ${texts.join(', ')}`;
}
