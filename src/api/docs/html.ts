/** HTML that is safe to embed; every other value is escaped where it is embedded. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Embedded = Html | string | number | undefined | false | readonly Embedded[];

/** A template whose values are escaped, unless they are HTML themselves. Lists are joined, nothing gives nothing. */
export function html(parts: TemplateStringsArray, ...values: readonly Embedded[]): Html {
  return new Html(parts.reduce((text, part, i) => text + embed(values[i - 1]) + part));
}

/** Text in which `code` stands between backquotes. */
export function prose(text: string): Html {
  const parts = text.split('`').map((part, i) => (i % 2 === 1 ? html`<code>${part}</code>` : html`${part}`));
  return html`${parts}`;
}

function embed(value: Embedded): string {
  if (value === undefined || value === false) return '';
  if (value instanceof Html) return value.text;
  if (Array.isArray(value)) return value.map(embed).join('');
  return String(value).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
