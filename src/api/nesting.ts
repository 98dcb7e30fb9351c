const quote = 0x22;
const backslash = 0x5c;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/**
 * Whether objects and arrays lie deeper inside each other than `maxDepth`, in bytes that may be JSON: found before
 * anything walks over what is nested, which would need a stack as deep.
 */
export function isNestedDeeperThan(json: Buffer, maxDepth: number): boolean {
  let depth = 0;
  for (let i = 0; i < json.length; i++) {
    switch (json[i]) {
      case quote:
        i = endOfString(json, i);
        break;
      case openBrace:
      case openBracket:
        depth++;
        if (depth > maxDepth) return true;
        break;
      case closeBrace:
      case closeBracket:
        depth--;
        break;
    }
  }
  return false;
}

/** Where the string that begins at `start` ends; the end of the text when it does not. */
function endOfString(json: Buffer, start: number): number {
  let end = json.indexOf(quote, start + 1);
  while (end !== -1 && isEscaped(json, end)) end = json.indexOf(quote, end + 1);
  return end === -1 ? json.length : end;
}

function isEscaped(json: Buffer, at: number): boolean {
  let backslashes = 0;
  while (json[at - 1 - backslashes] === backslash) backslashes++;
  return backslashes % 2 === 1;
}
