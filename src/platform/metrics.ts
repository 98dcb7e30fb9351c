import { collectDefaultMetrics, Registry } from 'prom-client';

/** A registry with the metrics of the Node.js process in it, every one labelled with `labels`. */
export function createRegistry(labels: Readonly<Record<string, string>> = {}): Registry {
  const registry = new Registry();
  registry.setDefaultLabels(labels);
  collectDefaultMetrics({ register: registry });
  return registry;
}
