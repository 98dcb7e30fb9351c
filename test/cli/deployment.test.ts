import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { catalogueSchema } from '../../src/models/catalogue.js';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const unique = (names: Iterable<string>) => [...new Set(names)].sort();
const matches = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map((match) => match[1]!);

/** The keys of the schema, which the module keeps to itself. */
const known = unique(matches(read('src/platform/config.ts'), /^ {2}([A-Z][A-Z_]+): /gm));
const compose = read('docker-compose.yml');

describe('.env.example', () => {
  it('lists every variable that is read, and no other', () => {
    expect(unique(matches(read('.env.example'), /^# ([A-Z][A-Z_]+)=/gm))).toEqual(known);
  });

  it('sets nothing as it is', () => {
    expect(read('.env.example')).not.toMatch(/^[^#\n]/m);
  });
});

describe('docker-compose.yml', () => {
  it('gives containers only variables that are read', () => {
    const given = unique(matches(compose, /^ +((?:HEADRACE|HF|DATABASE|REDIS)_[A-Z_]+): /gm));

    expect(given.length).toBeGreaterThan(5);
    expect(given.filter((name) => !known.includes(name))).toEqual([]);
  });

  it('takes from the environment only variables that are read, and the password of its database', () => {
    const taken = unique(matches(compose, /\$\{([A-Z_]+)/g));

    expect(taken.filter((name) => !known.includes(name))).toEqual(['POSTGRES_PASSWORD']);
  });

  it('has a worker for each model of the catalogue', () => {
    const { models } = catalogueSchema.parse(JSON.parse(read('headrace.models.json')));

    expect(unique(matches(compose, /command: \[worker, --model, ([^\]]+)\]/g))).toEqual(
      unique(models.map(({ id }) => id)),
    );
  });
});

describe('Dockerfile', () => {
  it('sets only variables that are read', () => {
    const set = unique(matches(read('Dockerfile'), /\b(HEADRACE_[A-Z_]+)=/g));

    expect(set.length).toBeGreaterThan(2);
    expect(set.filter((name) => !known.includes(name))).toEqual([]);
  });
});
