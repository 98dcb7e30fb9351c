import { readFile } from 'node:fs/promises';
import Module, { createRequire } from 'node:module';
import { dirname } from 'node:path';
import type * as Library from '@mlc-ai/web-xgrammar';

export type GrammarLibrary = typeof Library;
export type { CompiledGrammar, GrammarCompiler, GrammarMatcher, TokenizerInfo } from '@mlc-ai/web-xgrammar';

/** A CommonJS module of Node.js, with what its types leave out. */
interface CommonJsModule {
  readonly exports: unknown;
  filename: string;
  paths: readonly string[];
  _compile(source: string, filename: string): void;
}

/**
 * A fresh instance of xgrammar, with a WebAssembly memory of its own. Its bundle is a CommonJS module in a package
 * that says it holds ES modules, so Node.js has to be told to compile it as what it is.
 *
 * A failed check inside it aborts the instance: nothing made by it can be used after that.
 */
export async function loadGrammarLibrary(): Promise<GrammarLibrary> {
  const filename = createRequire(import.meta.url).resolve('@mlc-ai/web-xgrammar');
  const module = new Module(filename) as unknown as CommonJsModule;
  module.filename = filename;
  module.paths = [dirname(filename)];
  module._compile(await readFile(filename, 'utf8'), filename);
  return module.exports as GrammarLibrary;
}
