import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { compileFunction, constants } from 'node:vm';
import type * as Library from '@mlc-ai/web-xgrammar';

export type GrammarLibrary = typeof Library;
export type { CompiledGrammar, GrammarCompiler, GrammarMatcher, TokenizerInfo } from '@mlc-ai/web-xgrammar';

/**
 * A fresh instance of xgrammar, with a WebAssembly memory of its own. Its bundle is a CommonJS module in a package
 * that says it holds ES modules, so it is compiled by hand.
 *
 * A failed check inside it aborts the instance: nothing made by it can be used after that.
 */
export async function loadGrammarLibrary(): Promise<GrammarLibrary> {
  const require = createRequire(import.meta.url);
  const filename = require.resolve('@mlc-ai/web-xgrammar');
  const module = { exports: {} };
  const run = compileFunction(
    await readFile(filename, 'utf8'),
    ['exports', 'require', 'module', '__filename'],
    {
      filename,
      importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    },
  );
  run.call(undefined, module.exports, createRequire(filename), module, filename);
  return module.exports as GrammarLibrary;
}
