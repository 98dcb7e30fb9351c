import { describe, expect, it } from 'vitest';
import type { Notice } from '../../../src/contract/notices.js';
import { atomFeed } from '../../../src/platform/notices/atom-feed.js';
import { childrenOf, parseXml, type XmlElement } from '../../support/xml.js';

const notice = (fields: Partial<Notice>): Notice => ({
  id: '0190a000-0000-7000-8000-000000000001',
  object: 'notice',
  created: 1_780_000_000,
  kind: 'model.offline',
  model: 'm',
  audience: 'everyone',
  title: 'Title',
  text: 'Text',
  ...fields,
});
const feed = { id: 'urn:uuid:1', self: '/v1/notices.atom', updated: new Date('2026-01-01T00:00:00Z') };
const textOf = (element: XmlElement, name: string) => childrenOf(element, name)[0]?.text;

describe('the Atom feed', () => {
  it('has what RFC 4287 requires of a feed and of each entry', () => {
    const root = parseXml(atomFeed([notice({})], feed));
    expect(root).toMatchObject({ name: 'feed', attributes: { xmlns: 'http://www.w3.org/2005/Atom' } });
    expect(textOf(root, 'id')).toBe('urn:uuid:1');
    expect(textOf(root, 'title')).not.toBe('');
    expect(textOf(root, 'updated')).toBe('2026-05-28T20:26:40.000Z');
    expect(textOf(childrenOf(root, 'author')[0]!, 'name')).toBe('Headrace');
    expect(childrenOf(root, 'link')[0]!.attributes).toMatchObject({ rel: 'self', href: '/v1/notices.atom' });
    const [entry] = childrenOf(root, 'entry');
    expect(textOf(entry!, 'id')).toBe('urn:uuid:0190a000-0000-7000-8000-000000000001');
    expect(textOf(entry!, 'updated')).toBe('2026-05-28T20:26:40.000Z');
    expect(textOf(entry!, 'title')).toBe('Title');
    expect(textOf(entry!, 'content')).toBe('Text');
  });

  it('is well-formed while it is empty', () => {
    const root = parseXml(atomFeed([], feed));
    expect(textOf(root, 'updated')).toBe('2026-01-01T00:00:00.000Z');
    expect(childrenOf(root, 'entry')).toEqual([]);
  });

  it('carries text that looks like markup as text', () => {
    const hostile = `</title><script>alert("&amp;'")</script>]]>`;
    const root = parseXml(atomFeed([notice({ title: hostile, text: hostile, model: hostile })], feed));
    const [entry] = childrenOf(root, 'entry');
    expect(textOf(entry!, 'title')).toBe(hostile);
    expect(textOf(entry!, 'content')).toBe(hostile);
    expect(childrenOf(entry!, 'category').map(({ attributes }) => attributes['term'])).toContain(hostile);
  });

  it('leaves out what XML cannot carry', () => {
    const root = parseXml(atomFeed([notice({ title: 'a\u0000b\u001Bc\uD800d\uFFFFe🙂' })], feed));
    expect(textOf(childrenOf(root, 'entry')[0]!, 'title')).toBe('a\uFFFDb\uFFFDc\uFFFDd\uFFFDe🙂');
  });
});
