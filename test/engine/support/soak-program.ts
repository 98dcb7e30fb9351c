// A process in which nothing lives but an engine and its soak: reads the settings from its argument, sends the report.
import { runSoak } from '../../../bench/soak/run-soak.js';
import type { EngineSettings } from '../../../src/engine/engine.js';
import { startEngineThread } from '../../../src/engine/engine-thread.js';
import { threadScript } from './thread-script.js';

const { settings, ...options } = JSON.parse(process.argv[2] ?? '') as {
  settings: EngineSettings;
  seed: number;
  requests: number;
  warmUp: number;
};
const engine = await startEngineThread(settings, {
  signal: new AbortController().signal,
  script: threadScript(),
});
const report = await runSoak(engine, { ...options, settings });
await engine.close();
process.send?.(report);
