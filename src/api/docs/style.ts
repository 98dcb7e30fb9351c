/** The look of the page: the reader's own fonts and their choice of light or dark. */
export const style = `
:root { color-scheme: light dark; --text: #1d2330; --soft: #566072; --line: #d7dce4; --paper: #fff; --panel: #f5f7fa;
  --accent: #0b5fa5; --get: #1b6e3c; --post: #8a4b08; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e8ef; --soft: #a3adbd; --line: #39414f; --paper: #14181f;
  --panel: #1d232d; --accent: #7cb8f2; --get: #7fd3a0; --post: #f0b46a; } }
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body { margin: 0; color: var(--text); background: var(--paper); font: 16px/1.55 system-ui, sans-serif; }
a { color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.skip { position: absolute; left: -100rem; }
.skip:focus { left: 1rem; top: 1rem; background: var(--paper); padding: .5rem; }
.layout { display: grid; grid-template-columns: 17rem minmax(0, 1fr); max-width: 84rem; margin: 0 auto; }
nav { padding: 2rem 1rem; border-right: 1px solid var(--line); position: sticky; top: 0; height: 100vh; overflow: auto; }
nav h2 { font-size: .8rem; text-transform: uppercase; letter-spacing: .06em; color: var(--soft); margin: 1.4rem 0 .3rem; }
nav ul { list-style: none; margin: 0; padding: 0; font-size: .9rem; }
nav a { display: block; padding: .2rem 0; text-decoration: none; overflow-wrap: anywhere; }
nav a:hover { text-decoration: underline; }
main { padding: 2rem; }
h1 { margin: 0; font-size: 1.9rem; }
h2 { margin: 2.5rem 0 .5rem; }
h3 { margin: 2rem 0 .4rem; font-size: 1.15rem; }
h4 { margin: 1.4rem 0 .4rem; font-size: .95rem; color: var(--soft); }
article { border-top: 1px solid var(--line); }
code, pre { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .875em; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: .8rem 1rem; overflow: auto; }
.method { font-weight: 700; }
.get { color: var(--get); } .post { color: var(--post); }
.required { color: var(--post); } small { color: var(--soft); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; margin: .5rem 0 1rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .7rem .4rem 0; border-bottom: 1px solid var(--line); }
thead th { color: var(--soft); font-weight: 600; }
tbody th { font-weight: 400; }
summary { cursor: pointer; padding: .3rem 0; }
@media (max-width: 52rem) { .layout { display: block; } nav { position: static; height: auto; border-right: 0;
  border-bottom: 1px solid var(--line); padding: 1rem 2rem; } }
`;
