/** An element of a document: its name, attributes, text and children. */
export interface XmlElement {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  text: string;
  readonly children: XmlElement[];
}

const name = '[A-Za-z_][\\w.:-]*';
const attribute = `\\s+(${name})="([^"<]*)"`;
const token = new RegExp(`<(/?)(${name})((?:${attribute})*)\\s*(/?)>|([^<]+)`, 'y');

/**
 * Parses a document without comments, CDATA and processing instructions, as strictly as XML 1.0 asks.
 * @throws Error saying where it is not well-formed.
 */
export function parseXml(document: string): XmlElement {
  const declaration = /^<\?xml version="1\.0" encoding="utf-8"\?>\s*/.exec(document);
  if (declaration === null) throw new Error('no XML declaration');
  const root: XmlElement = { name: '', attributes: {}, text: '', children: [] };
  const open = [root];
  token.lastIndex = declaration[0].length;
  while (token.lastIndex < document.length) {
    const at = token.lastIndex;
    const match = token.exec(document);
    if (match === null) throw new Error(`not well-formed at ${at}: ${document.slice(at, at + 40)}`);
    const [, closing, tag, attributes = '', , , empty, text] = match;
    if (text !== undefined) {
      open.at(-1)!.text += decode(text);
    } else if (closing === '/') {
      const closed = open.pop()!;
      if (closed.name !== tag) throw new Error(`</${tag}> closes <${closed.name}> at ${at}`);
    } else {
      const pairs = [...attributes.matchAll(new RegExp(attribute, 'g'))].map(([, key, value]) => [
        key!,
        decode(value!),
      ]);
      if (new Set(pairs.map(([key]) => key)).size < pairs.length)
        throw new Error(`repeated attribute at ${at}`);
      const element = { name: tag!, attributes: Object.fromEntries(pairs), text: '', children: [] };
      open.at(-1)!.children.push(element);
      if (empty === '') open.push(element);
    }
  }
  if (open.length !== 1 || root.children.length !== 1 || root.text.trim() !== '') {
    throw new Error('not one element');
  }
  return root.children[0]!;
}

/** The children with a name. */
export function childrenOf(element: XmlElement, childName: string): XmlElement[] {
  return element.children.filter((child) => child.name === childName);
}

function decode(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that XML forbids.
  if (/[\u0000-\u0008\u000B\u000C\u000E-\u001F\uFFFE\uFFFF]|\p{Cs}/u.test(text))
    throw new Error('a character that XML forbids');
  return text.replace(/&(\w*)(;?)/g, (whole, entity: string, end: string) => {
    const value = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }[entity];
    if (value === undefined || end === '') throw new Error(`an ampersand that is no entity: ${whole}`);
    return value;
  });
}
