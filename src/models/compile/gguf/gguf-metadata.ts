import type { MetadataValue } from '@huggingface/gguf';
import { CheckpointError } from '../checkpoint.js';

/** The key-value pairs of a GGUF file, each read as what it must be. */
export class GgufMetadata {
  readonly path: string;
  readonly #values: Readonly<Record<string, MetadataValue | undefined>>;

  constructor(path: string, values: Readonly<Record<string, MetadataValue | undefined>>) {
    this.path = path;
    this.#values = values;
  }

  /** @throws CheckpointError when the key is there and is not a number. */
  number(key: string): number | undefined {
    const value = this.#values[key];
    if (value === undefined) {
      return undefined;
    }
    const number = typeof value === 'bigint' ? Number(value) : value;
    return typeof number === 'number' ? number : this.#fail(key, 'is not a number');
  }

  /** @throws CheckpointError when the key is there and is neither true nor false. */
  flag(key: string): boolean | undefined {
    const value = this.#values[key];
    return value === undefined || typeof value === 'boolean'
      ? value
      : this.#fail(key, 'is not true or false');
  }

  /** A whole number above zero. @throws CheckpointError when it is missing or something else. */
  size(key: string): number {
    const value = this.number(key) ?? this.#fail(key, 'is missing');
    return Number.isSafeInteger(value) && value > 0 ? value : this.#fail(key, `is ${value}, not a size`);
  }

  /** @throws CheckpointError when the key is there and is not a string. */
  text(key: string): string | undefined {
    const value = this.#values[key];
    return value === undefined || typeof value === 'string' ? value : this.#fail(key, 'is not a string');
  }

  /** @throws CheckpointError when the key is missing or is not a list of strings. */
  texts(key: string): readonly string[] {
    const value = this.#values[key] ?? this.#fail(key, 'is missing');
    return isListOf(value, 'string') ? value : this.#fail(key, 'is not a list of strings');
  }

  /** @throws CheckpointError when the key is there and is not a list of numbers. */
  numbers(key: string): readonly number[] | undefined {
    const value = this.#values[key];
    return value === undefined || isListOf(value, 'number')
      ? value
      : this.#fail(key, 'is not a list of numbers');
  }

  #fail(key: string, what: string): never {
    throw new CheckpointError(`${this.path}: ${key} ${what}`);
  }
}

interface Types {
  string: string;
  number: number;
}

function isListOf<Name extends keyof Types>(value: MetadataValue, type: Name): value is Types[Name][] {
  return Array.isArray(value) && value.every((item) => typeof item === type);
}
