/**
 * Byte-level vocabularies (GPT-2) spell each of the 256 bytes with one printable character: the printable ones of
 * Latin-1 stand for themselves, the other 68 for U+0100 and what follows, in order.
 */
const byteOfCharacter: ReadonlyMap<string, number> = (() => {
  const isPrintable = (byte: number) =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  const map = new Map<string, number>();
  let next = 0x100;
  for (let byte = 0; byte < 256; byte++) {
    if (isPrintable(byte)) map.set(String.fromCharCode(byte), byte);
    else map.set(String.fromCharCode(next++), byte);
  }
  return map;
})();

/**
 * The bytes a byte-level token stands for. A token with any other character in it was added to the vocabulary as
 * text, and stands for that text in UTF-8.
 */
export function byteLevelBytes(token: string): Uint8Array {
  const bytes = new Uint8Array(token.length);
  for (let index = 0; index < token.length; index++) {
    const byte = byteOfCharacter.get(token[index]!);
    if (byte === undefined) return new TextEncoder().encode(token);
    bytes[index] = byte;
  }
  return bytes;
}
