/** Rules of EBNF as they are gathered, each with a name of its own. */
export class Rules {
  readonly #bodies = new Map<string, string>();
  /** Of the rules that are shared, by their bodies. */
  readonly #shared = new Map<string, string>();
  readonly #numbers = new Map<string, number>();
  #characters = 0;

  /** EBNF written so far. */
  get characters(): number {
    return this.#characters;
  }

  /** A name for a rule that is defined later: rules may refer to each other. */
  newName(prefix: string): string {
    const number = this.#numbers.get(prefix) ?? 0;
    this.#numbers.set(prefix, number + 1);
    return `${prefix}${number}`;
  }

  define(name: string, body: string): string {
    this.#bodies.set(name, body);
    this.#characters += name.length + body.length;
    return name;
  }

  /** A rule that is `body`, the same one for the same body: the compiler pays for each. Returns its name. */
  share(prefix: string, body: string): string {
    let name = this.#shared.get(body);
    if (name === undefined) {
      name = this.define(this.newName(prefix), body);
      this.#shared.set(body, name);
    }
    return name;
  }

  get lines(): string[] {
    return [...this.#bodies].map(([name, body]) => `${name} ::= ${body}`);
  }
}
