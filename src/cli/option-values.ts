import { InvalidArgumentError } from 'commander';

/** A parser of whole numbers from `min` to `max`. */
export function integer(min: number, max: number = Number.MAX_SAFE_INTEGER): (value: string) => number {
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
  return (value) => {
    const number = Number(value);
    if (/^-?\d+$/.test(value) && Number.isSafeInteger(number) && number >= min && number <= max)
      return number;
    throw new InvalidArgumentError(`It must be a whole number ${range}.`);
  };
}

/** A parser of decimal numbers from `min` to `max`. */
export function decimal(min: number, max: number): (value: string) => number {
  return (value) => {
    const number = Number(value);
    if (value.trim() !== '' && number >= min && number <= max) return number;
    throw new InvalidArgumentError(`It must be a number from ${min} to ${max}.`);
  };
}

/**
 * The address of a service without a slash or `/v1` at its end, which people paste from other clients' settings.
 * @throws InvalidArgumentError when it is not an http or https URL.
 */
export function serviceUrl(value: string): string {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined || !['http:', 'https:'].includes(url.protocol)) {
    throw new InvalidArgumentError('It must start with http:// or https://.');
  }
  return (url.origin + url.pathname).replace(/\/+$/, '').replace(/\/v1$/, '');
}

/** A duration such as `90d`, `12h` or `30m`, in milliseconds. */
export function duration(value: string): number {
  const match = /^([1-9]\d{0,5})([mhd])$/.exec(value);
  if (match === null) throw new InvalidArgumentError('It must be a number and m, h or d: 90d.');
  const unitMs = { m: 60_000, h: 3_600_000, d: 86_400_000 }[match[2] as 'm' | 'h' | 'd'];
  return Number(match[1]) * unitMs;
}

/** `yes` or `no`. */
export function yesOrNo(value: string): boolean {
  if (value === 'yes' || value === 'no') return value === 'yes';
  throw new InvalidArgumentError('It must be yes or no.');
}

/** A limit: a number, `none` (-1), or `usual` for what the catalogue says. Commander does not take null. */
export function limitValue(value: string): number | 'usual' {
  if (value === 'usual') return value;
  return value === 'none' ? -1 : integer(0, 2_147_483_647)(value);
}

/** A parser of names between commas, each one of `names`. */
export function oneOrMoreOf<Name extends string>(names: readonly Name[]): (value: string) => Name[] {
  return (value) =>
    value.split(',').map((part) => {
      const name = names.find((known) => known === part.trim());
      if (name !== undefined) return name;
      throw new InvalidArgumentError(`It must be some of ${names.join(', ')}, with commas between.`);
    });
}
