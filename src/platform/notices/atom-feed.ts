import type { Notice } from '../../contract/notices.js';

/** What XML 1.0 cannot carry, not even escaped (section 2.2). */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that XML forbids.
const forbidden = /[\u0000-\u0008\u000B\u000C\u000E-\u001F\uFFFE\uFFFF]|\p{Cs}/gu;

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

/**
 * Notices as an Atom feed (RFC 4287).
 * @param feed `id` is the feed's for ever, and `updated` its time while it is empty.
 */
export function atomFeed(
  notices: readonly Notice[],
  feed: { id: string; self: string; updated: Date },
): string {
  const updated = notices[0] === undefined ? feed.updated.toISOString() : timeOf(notices[0]);
  return `<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
  <id>${escapeXml(feed.id)}</id>
  <title>Headrace notices</title>
  <updated>${updated}</updated>
  <author><name>Headrace</name></author>
  <link rel="self" type="application/atom+xml" href="${escapeXml(feed.self)}"/>
${notices.map(entry).join('')}</feed>
`;
}

function entry(notice: Notice): string {
  const model =
    notice.model === null ? '' : `\n    <category term="${escapeXml(notice.model)}" label="model"/>`;
  return `  <entry>
    <id>urn:uuid:${escapeXml(notice.id)}</id>
    <title>${escapeXml(notice.title)}</title>
    <published>${timeOf(notice)}</published>
    <updated>${timeOf(notice)}</updated>
    <category term="${escapeXml(notice.kind)}"/>${model}
    <content type="text">${escapeXml(notice.text)}</content>
  </entry>
`;
}

function timeOf({ created }: Notice): string {
  return new Date(created * 1000).toISOString();
}

function escapeXml(text: string): string {
  return text.replace(forbidden, '\uFFFD').replace(/[&<>"']/g, (character) => entities[character]!);
}
