import type { Catalogue, CatalogueModel } from '../models/catalogue.js';

/** A curl line that works when it is pasted into a shell: it asks the first model of the catalogue, chat preferred. */
export function firstRequest({
  url,
  keyPath,
  catalogue: { models },
}: {
  url: string;
  keyPath: string;
  catalogue: Catalogue;
}): string {
  const model = models.find(({ task }) => task === 'chat') ?? models[0]!;
  const { path, body } = requestFor(model);
  return [
    `curl -N ${quote(url + path)}`,
    `-H "Authorization: Bearer $(cat ${quote(keyPath)})"`,
    "-H 'Content-Type: application/json'",
    `-d ${quote(JSON.stringify(body))}`,
  ].join(' ');
}

function requestFor({ id, task }: CatalogueModel): { path: string; body: unknown } {
  switch (task) {
    case 'chat': {
      const messages = [{ role: 'user', content: 'What is a mill wheel?' }];
      return { path: '/v1/chat/completions', body: { model: id, stream: true, messages } };
    }
    case 'rerank': {
      const documents = ['Bread is baked from flour.', 'Leonardo da Vinci painted the Mona Lisa.'];
      return {
        path: '/v1/rerank',
        body: { model: id, query: 'Who painted the Mona Lisa?', documents, return_documents: true },
      };
    }
  }
}

/** One word of a POSIX shell; bare where that is the same, so that it stays readable. */
function quote(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
