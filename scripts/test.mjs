// `npm test`: types, lint, boundaries, build, tests, in that order, and one closing line of counts.
// Arguments go to vitest: `npm test -- test/engine`.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const filters = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'headrace-test-'));
const report = join(folder, 'report.json');

const steps = [
  { title: 'types', command: ['npm', 'run', '--silent', 'types'] },
  { title: 'lint', command: ['npm', 'run', '--silent', 'lint'] },
  { title: 'boundaries', command: ['npm', 'run', '--silent', 'boundaries'] },
  { title: 'build', command: ['npm', 'run', '--silent', 'build'] },
  {
    title: 'tests',
    command: [
      'npx',
      'vitest',
      'run',
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${report}`,
      ...filters,
    ],
  },
];

let failedStep;
for (const { title, command } of steps) {
  console.log(`\n== ${title}`);
  const { status } = spawnSync(command[0], command.slice(1), {
    stdio: 'inherit',
    shell: process.platform === 'win32',
  });
  if (status !== 0) {
    failedStep = title;
    break;
  }
}

const counts = { passed: 0, failed: 0, skipped: 0 };
try {
  const { numPassedTests, numFailedTests, numPendingTests, numTodoTests, testResults } = JSON.parse(
    readFileSync(report, 'utf8'),
  );
  counts.passed = numPassedTests;
  counts.failed = numFailedTests;
  counts.skipped = numPendingTests + numTodoTests;
  // A file that fails outside of any test (its imports, a hook) counts too.
  counts.failed += testResults.filter(
    ({ status, assertionResults }) =>
      status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
  ).length;
} catch {
  // No report: a step before the tests failed, and is counted below.
}
rmSync(folder, { recursive: true, force: true });

if (failedStep !== undefined) {
  console.log(`\nfailed at: ${failedStep}`);
  counts.failed = Math.max(counts.failed, 1);
}
console.log(`\n${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
process.exit(failedStep === undefined && counts.failed === 0 ? 0 : 1);
