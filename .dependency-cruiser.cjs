/** The imports that must never exist. ARCHITECTURE.md, "Folders", gives the reason of each. */

/** A rule: files under `from` may not import `to` (a path pattern; a bare package is matched in node_modules). */
const never = (name, from, to, comment) => ({ name, comment, severity: 'error', from, to });
const npm = (names) => `node_modules/(${names})/`;

module.exports = {
  forbidden: [
    never('no-cycles', {}, { circular: true }, 'A cycle has no order to read it in.'),
    never(
      'no-import-of-main',
      {},
      { path: '^src/.*/(main|thread)\\.ts$' },
      "A main wires and starts; it is nobody's library.",
    ),
    never(
      'contract-is-the-bottom',
      { path: '^src/contract/' },
      { pathNot: ['^src/contract/', npm('zod')] },
      'Promises between processes depend on nothing but zod.',
    ),
    never(
      'models-above-contract-only',
      { path: '^src/models/' },
      { path: '^src/', pathNot: '^src/(models|contract)/' },
      'What a model is does not depend on who runs it.',
    ),
    never(
      'platform-knows-no-process',
      { path: '^src/platform/' },
      { path: '^src/(api|worker|engine|cli)/' },
      'The platform serves every process and knows none.',
    ),
    never(
      'api-stays-thin',
      { path: '^src/api/' },
      { path: ['^src/(worker|engine|cli|models/compile)/', npm('onnxruntime-node|tokenizers')] },
      'The API process never loads a model.',
    ),
    never(
      'worker-is-no-server',
      { path: '^src/worker/' },
      { path: ['^src/(api|cli)/', npm('fastify')] },
      'A worker speaks to the queue and the channel, never HTTP.',
    ),
    never(
      'engine-knows-tokens-only',
      { path: '^src/engine/' },
      { path: '^src/', pathNot: ['^src/engine/', '^src/models/(manifest|onnx-writer)\\.ts$'] },
      'The engine knows token ids, never text, Redis, HTTP or SQL.',
    ),
    never(
      'cli-clients-are-clients',
      { path: '^src/cli/client/' },
      { path: '^src/', pathNot: '^src/(contract|cli/client)/' },
      'chat, rerank, batch and bench use the service as anyone would.',
    ),
    never(
      'onnxruntime-in-one-file',
      { pathNot: '^src/engine/onnx-session\\.ts$' },
      { path: npm('onnxruntime-node') },
      'One file to change when the runtime changes.',
    ),
    never(
      'bullmq-behind-the-backplane',
      { pathNot: '^src/platform/backplane/' },
      { path: npm('bullmq') },
      'Nothing else knows which queue runs.',
    ),
    never(
      'no-dev-dependencies',
      { path: '^src/' },
      { dependencyTypes: ['npm-dev'] },
      'They are not installed in production.',
    ),
    never(
      'no-unlisted-packages',
      {},
      { dependencyTypes: ['npm-no-pkg', 'unknown', 'undetermined'] },
      'Every dependency is declared.',
    ),
    never('no-unresolvable', {}, { couldNotResolve: true }, 'Every import exists.'),
  ],
  options: {
    parser: 'swc',
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '/generated/' },
    enhancedResolveOptions: {
      extensions: ['.ts', '.js'],
      conditionNames: ['import', 'node', 'default', 'types'],
      exportsFields: ['exports'],
    },
  },
};
