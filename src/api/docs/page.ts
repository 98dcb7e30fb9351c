import type {
  MediaType,
  OpenApiDocument,
  Operation,
  Parameter,
  ResponseObject,
} from '../openapi/document.js';
import { Html, html, prose } from './html.js';
import { refersTo, schemaAnchor, schemaView, typeView } from './schema-view.js';
import { style } from './style.js';

interface Endpoint {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

/** The description of the service as a page that loads nothing: no scripts, fonts or styles from elsewhere. */
export function renderPage(document: OpenApiDocument): string {
  const { info, tags, components } = document;
  const endpoints = [
    ...Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]): Endpoint => ({ method, path, operation })),
    ),
    ...Object.values(document.webhooks).map(
      ({ post }): Endpoint => ({ method: 'hook', path: 'your own address', operation: post }),
    ),
  ];
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
<nav aria-label="Contents" id="contents">
<input type="checkbox" id="menu" class="hidden"><label for="menu">Contents</label>
<div class="menu">
${groups.map(
  ({ name, endpoints }) => html`<h2>${name}</h2>
<ul>${endpoints.map(({ method, path, operation }) => html`<li><a href="#${operation.operationId}">${methodView(method)} ${path}</a></li>`)}</ul>`,
)}
<h2>Schemas</h2>
<ul>${schemas.map(([name]) => html`<li><a href="#${schemaAnchor(name)}">${name}</a></li>`)}</ul>
</div>
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
${endpoints.map((endpoint) => endpointView(endpoint, components.schemas))}
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
<p class="top"><a href="#contents">To the contents</a></p>
</main>
</div>
</body>
</html>
`.text;
}

type Schemas = OpenApiDocument['components']['schemas'];

function endpointView({ method, path, operation }: Endpoint, schemas: Schemas): Html {
  const { operationId, summary, description, parameters = [], requestBody, responses } = operation;
  return html`<article>
<h3 id="${operationId}">${methodView(method)} <code>${path}</code></h3>
<p class="summary">${summary}.</p>
${description !== undefined && html`<p>${prose(description)}</p>`}
${parameters.length > 0 && html`<h4>Parameters</h4>${parameterTable(parameters)}`}
${
  requestBody &&
  html`<h4>Request</h4>${Object.entries(requestBody.content).map(([type, media]) => requestView(type, media, schemas))}`
}
<h4>Responses</h4>
${Object.entries(responses).map(([status, response]) => responseView(status, response))}
</article>`;
}

function parameterTable(parameters: readonly Parameter[]): Html {
  return html`<div class="scroll"><table>
<thead><tr><th scope="col">Name</th><th scope="col">Type</th><th scope="col">Meaning</th></tr></thead>
<tbody>${parameters.map(
    ({ name, in: place, required, schema, description }) => html`<tr>
<th scope="row"><code>${name}</code> <small>${place}</small>${required && html` <small class="required">required</small>`}</th>
<td>${typeView(schema)}</td><td>${prose(description)}</td></tr>`,
  )}</tbody></table></div>`;
}

/** The fields at once, because they are what a reader looks for; what they look like in a request behind them. */
function requestView(type: string, { schema = {}, examples }: MediaType, schemas: Schemas): Html {
  const named = schemas[refersTo(schema) ?? ''];
  return html`<p><code>${type}</code>: ${typeView(schema)}</p>
${named && schemaView(named)}
${examplesView(examples)}`;
}

function responseView(status: string, { description, headers = {}, content = {} }: ResponseObject): Html {
  const names = Object.entries(headers);
  return html`<details class="response"${status === '200' && html` open`}>
<summary><strong class="${status.startsWith('2') ? 'good' : 'bad'}">${status}</strong> ${prose(description)}</summary>
${Object.entries(content).map(
  ([type, { schema, examples }]) =>
    html`<p><code>${type}</code>${schema && html`: ${typeView(schema)}`}</p>${examplesView(examples)}`,
)}
${
  names.length > 0 &&
  html`<h5>Headers</h5><dl>${names.map(
    ([name, header]) => html`<dt><code>${name}</code></dt><dd>${prose(header.description)}</dd>`,
  )}</dl>`
}
</details>`;
}

/** Short examples are open; of several, the first. */
function examplesView(examples: MediaType['examples'] = {}): Html {
  return html`${Object.values(examples).map(
    ({ summary = 'Example', value }, i) => html`<details class="example"${i === 0 && html` open`}>
<summary>${summary}</summary>
<pre tabindex="0"><code>${typeof value === 'string' ? value : JSON.stringify(value, null, 2)}</code></pre>
</details>`,
  )}`;
}

function methodView(method: string): Html {
  return html`<span class="method ${method}">${method.toUpperCase()}</span>`;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
