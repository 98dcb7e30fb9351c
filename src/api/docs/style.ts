/** The look of the page: the reader's own fonts and their choice of light or dark. */
export const style = `
:root { color-scheme: light dark; --text: #1d2330; --soft: #566072; --line: #d7dce4; --paper: #fff; --panel: #f5f7fa;
  --accent: #0b5fa5; --get: #1b6e3c; --post: #8a4b08; --change: #6b3fa0; --bad: #a32020; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e8ef; --soft: #a3adbd; --line: #39414f; --paper: #14181f;
  --panel: #1d232d; --accent: #7cb8f2; --get: #7fd3a0; --post: #f0b46a; --change: #c9a6f5; --bad: #f59a9a; } }
* { box-sizing: border-box; }
html { scroll-padding-top: 1.2rem; }
body { margin: 0; color: var(--text); background: var(--paper); font: 16px/1.55 system-ui, sans-serif; }
a { color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.skip { position: absolute; left: -100rem; }
.skip:focus { left: 1rem; top: 1rem; background: var(--paper); padding: .5rem; z-index: 1; }
.hidden { position: absolute; opacity: 0; pointer-events: none; }
.layout { display: grid; grid-template-columns: 18rem minmax(0, 1fr); max-width: 86rem; margin: 0 auto; }
nav { padding: 1rem 1rem 2rem; border-right: 1px solid var(--line); position: sticky; top: 0; height: 100vh;
  overflow: auto; }
nav label { display: none; }
nav h2 { font-size: .8rem; text-transform: uppercase; letter-spacing: .06em; color: var(--soft); margin: 1.4rem 0 .3rem; }
nav ul { list-style: none; margin: 0; padding: 0; font-size: .9rem; }
nav a { display: block; padding: .2rem .4rem; border-radius: 4px; text-decoration: none; overflow-wrap: anywhere; }
nav a:hover { background: var(--panel); text-decoration: underline; }
main { padding: 2rem; }
h1 { margin: 0; font-size: 1.9rem; line-height: 1.2; }
h2 { margin: 2.5rem 0 .5rem; }
h3 { margin: 1.6rem 0 .4rem; font-size: 1.15rem; overflow-wrap: anywhere; }
h4 { margin: 1.6rem 0 .4rem; font-size: .8rem; text-transform: uppercase; letter-spacing: .06em; color: var(--soft); }
h5 { margin: .8rem 0 .2rem; font-size: .85rem; color: var(--soft); }
article { border-top: 1px solid var(--line); padding-bottom: 1.5rem; }
article:target, article:has(:target) { border-top-color: var(--accent); }
p, dd, summary { overflow-wrap: anywhere; }
section > p, article > p { max-width: 46rem; }
.summary { font-weight: 600; margin: .2rem 0; }
code, pre { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .875em; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: .8rem 1rem; margin: .4rem 0;
  white-space: pre-wrap; overflow-wrap: anywhere; line-height: 1.45; }
.method { display: inline-block; min-width: 2.6rem; font: 700 .72rem/1.6 ui-monospace, Menlo, Consolas, monospace;
  letter-spacing: .02em; }
h3 .method { font-size: .8rem; border: 1px solid; border-radius: 4px; padding: 0 .4rem; margin-right: .2rem;
  min-width: 0; vertical-align: .08em; }
.get, .good { color: var(--get); } .post { color: var(--post); }
.patch, .delete, .hook { color: var(--change); } .bad { color: var(--bad); }
.required { color: var(--post); } small { color: var(--soft); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; margin: .5rem 0 1rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem 1rem .4rem 0; border-bottom: 1px solid var(--line); }
thead th { color: var(--soft); font-weight: 600; }
tbody th { font-weight: 400; width: 30%; } td:nth-child(2) { width: 28%; }
td, th { overflow-wrap: break-word; }
details { margin: .3rem 0; }
summary { cursor: pointer; padding: .25rem 0; white-space: pre-line; }
.example > summary { font-size: .88rem; color: var(--soft); }
.response { border: 1px solid var(--line); border-radius: 6px; padding: .2rem .9rem; }
.response[open] { padding-bottom: .8rem; }
.response p { margin: .5rem 0 .2rem; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .15rem 1rem; margin: 0; font-size: .9rem; }
dd { margin: 0; color: var(--soft); }
.top { margin-top: 3rem; font-size: .9rem; }
@media (max-width: 56rem) {
  .layout { display: block; }
  nav { position: static; height: auto; border-right: 0; border-bottom: 1px solid var(--line); padding: .6rem 1rem; }
  nav label { display: inline-block; cursor: pointer; font-weight: 600; padding: .35rem .8rem; border: 1px solid var(--line);
    border-radius: 6px; }
  nav :focus-visible + label { outline: 3px solid var(--accent); outline-offset: 2px; }
  nav label::after { content: ' \\25be'; } nav :checked + label::after { content: ' \\25b4'; }
  .menu { display: none; } nav :checked ~ .menu { display: block; }
  nav a { padding: .45rem .4rem; }
  main { padding: 1.2rem 1rem 3rem; }
  h1 { font-size: 1.6rem; }
  thead { position: absolute; left: -100rem; }
  tr { display: block; padding: .5rem 0; border-bottom: 1px solid var(--line); }
  tbody th, td, td:nth-child(2) { display: block; width: auto; border: 0; padding: .1rem 0; }
  td:nth-child(2) { color: var(--soft); font-size: .88rem; }
  dl { display: block; } dd { margin: 0 0 .4rem; }
}
`;
