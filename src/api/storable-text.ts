const maxCharacters = 256;

/** A name from a client as Postgres can store it: neither U+0000 nor lone surrogates, and not endless. */
export function storableText(text: string): string {
  return Buffer.from(text.replaceAll('\0', '').slice(0, maxCharacters)).toString();
}
