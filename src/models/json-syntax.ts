/** Where JSON text stops being JSON, for messages: JSON.parse does not always say. Grammar: RFC 8259. */
export interface JsonSyntaxError {
  readonly line: number;
  readonly column: number;
  readonly expected: string;
}

class Unexpected extends Error {
  readonly at: number;

  constructor(at: number, expected: string) {
    super(expected);
    this.at = at;
  }
}

const patterns = {
  space: /[ \t\n\r]*/y,
  // Anything from the space on but quote and backslash, or an escape.
  string: /"(?:[ !#-[\]-\u{10ffff}]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/uy,
  scalar: /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y,
};

/** The first error of `text`; undefined when it is JSON. */
export function findJsonSyntaxError(text: string): JsonSyntaxError | undefined {
  try {
    const end = skip(text, value(text, skip(text, 0)));
    if (end < text.length) {
      throw new Unexpected(end, 'the end of the file');
    }
    return undefined;
  } catch (error) {
    if (!(error instanceof Unexpected)) {
      throw error;
    }
    const before = text.slice(0, error.at).split('\n');
    return { line: before.length, column: before.at(-1)!.length + 1, expected: error.message };
  }
}

/** The end of what `pattern` matches at `at`; undefined when it does not. */
function match(pattern: RegExp, text: string, at: number): number | undefined {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : undefined;
}

const skip = (text: string, at: number): number => match(patterns.space, text, at)!;

/** Each reader takes where its part begins and returns where it ends. */
function value(text: string, at: number): number {
  switch (text[at]) {
    case '{':
      return list(text, at, '}', member);
    case '[':
      return list(text, at, ']', value);
    case '"':
      return string(text, at, 'a string that ends on its line');
    default:
      return match(patterns.scalar, text, at) ?? fail(at, 'a value');
  }
}

function member(text: string, at: number): number {
  const colon = skip(text, string(text, at, 'a name in double quotes'));
  if (text[colon] !== ':') {
    fail(colon, '":"');
  }
  return value(text, skip(text, colon + 1));
}

function list(text: string, at: number, close: string, item: typeof value): number {
  let next = skip(text, at + 1);
  if (text[next] === close) {
    return next + 1;
  }
  for (;;) {
    next = skip(text, item(text, next));
    if (text[next] === close) {
      return next + 1;
    }
    if (text[next] !== ',') {
      fail(next, `"," or "${close}"`);
    }
    next = skip(text, next + 1);
  }
}

function string(text: string, at: number, expected: string): number {
  return match(patterns.string, text, at) ?? fail(at, expected);
}

function fail(at: number, expected: string): never {
  throw new Unexpected(at, expected);
}
