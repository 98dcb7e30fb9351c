import { expect, test } from 'vitest';
import { createRegistry } from '../../src/platform/metrics.js';

test('a registry tells of the process, with its labels on every metric', async () => {
  const text = await createRegistry({ process: 'api' }).metrics();
  expect(text).toMatch(/^process_cpu_seconds_total\{process="api"\} \d/m);
});

test('two registries in one process do not know each other', async () => {
  const [one, two] = [createRegistry(), createRegistry()];
  expect(one.getSingleMetric('process_cpu_seconds_total')).not.toBe(
    two.getSingleMetric('process_cpu_seconds_total'),
  );
});
