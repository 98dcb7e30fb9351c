import type { MediaType, OpenApiDocument, Operation, ResponseObject } from '../openapi/document.js';
import { Html, html, prose } from './html.js';
import { schemaAnchor, schemaView, typeView } from './schema-view.js';
import { style } from './style.js';

interface Endpoint {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

/** The description of the service as a page that loads nothing: no scripts, fonts or styles from elsewhere. */
export function renderPage(document: OpenApiDocument): string {
  const { info, tags, components } = document;
  const endpoints = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Endpoint => ({ method, path, operation })),
  );
  const schemas = Object.entries(components.schemas);
  const groups = tags.map((tag) => ({
    ...tag,
    endpoints: endpoints.filter(({ operation }) => operation.tags.includes(tag.name)),
  }));
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${info.title} API</title>
<style>${new Html(style)}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<div class="layout">
<nav aria-label="Contents">
${groups.map(
  ({ name, endpoints }) => html`<h2>${name}</h2>
<ul>${endpoints.map(({ method, path, operation }) => html`<li><a href="#${operation.operationId}">${methodView(method)} ${path}</a></li>`)}</ul>`,
)}
<h2>Schemas</h2>
<ul>${schemas.map(([name]) => html`<li><a href="#${schemaAnchor(name)}">${name}</a></li>`)}</ul>
</nav>
<main id="main">
<h1>${info.title} <small>${info.version}</small></h1>
<p>${prose(info.description)}</p>
<p>For machines: <a href="/openapi.json">openapi.json</a>. ${Object.entries(components.securitySchemes).map(
    ([name, { description }]) =>
      html`Paths under <code>${name === 'admin' ? '/admin/v1' : '/v1'}</code> need ${prose(lowerFirst(description))}. `,
  )}</p>
${groups.map(
  ({ name, description, endpoints }) => html`<section>
<h2>${name}</h2>
<p>${prose(description)}</p>
${endpoints.map(endpointView)}
</section>`,
)}
<section>
<h2>Schemas</h2>
${schemas.map(
  ([name, schema]) => html`<article><h3 id="${schemaAnchor(name)}">${name}</h3>
${typeof schema['description'] === 'string' && html`<p>${prose(schema['description'])}</p>`}
${schemaView(schema)}</article>`,
)}
</section>
</main>
</div>
</body>
</html>
`.text;
}

function endpointView({ method, path, operation }: Endpoint): Html {
  const { operationId, summary, description, parameters = [], requestBody, responses } = operation;
  return html`<article>
<h3 id="${operationId}">${methodView(method)} <code>${path}</code></h3>
<p><strong>${summary}.</strong> ${description !== undefined && prose(description)}</p>
${
  parameters.length > 0 &&
  html`<h4>Parameters</h4><div class="scroll"><table>
<thead><tr><th scope="col">Name</th><th scope="col">Type</th><th scope="col">Meaning</th></tr></thead>
<tbody>${parameters.map(
    (parameter) => html`<tr><th scope="row"><code>${parameter.name}</code> <small>${parameter.in}</small></th>
<td>${typeView(parameter.schema)}</td><td>${prose(parameter.description)}</td></tr>`,
  )}</tbody></table></div>`
}
${requestBody && html`<h4>Request</h4>${contentView(requestBody.content)}`}
<h4>Responses</h4>
${Object.entries(responses).map(([status, response]) => responseView(status, response))}
</article>`;
}

function responseView(status: string, { description, headers = {}, content = {} }: ResponseObject): Html {
  return html`<details${status === '200' && html` open`}>
<summary><strong>${status}</strong> ${prose(description)}</summary>
${contentView(content)}
<p><small>Headers: ${Object.entries(headers).map(
    ([name, header], i) => html`${i > 0 && '; '}<code>${name}</code> ${lowerFirst(header.description)}`,
  )}</small></p>
</details>`;
}

function contentView(content: Readonly<Record<string, MediaType>>): Html {
  return html`${Object.entries(content).map(
    ([type, { schema, examples = {} }]) => html`<p><code>${type}</code>: ${schema && typeView(schema)}</p>
${Object.values(examples).map(
  ({ summary, value }) => html`${summary !== undefined && html`<p><small>${summary}</small></p>`}
<pre tabindex="0"><code>${typeof value === 'string' ? value : JSON.stringify(value, null, 2)}</code></pre>`,
)}`,
  )}`;
}

function methodView(method: string): Html {
  return html`<span class="method ${method}">${method.toUpperCase()}</span>`;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
