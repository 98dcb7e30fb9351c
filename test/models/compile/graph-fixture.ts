import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { OnnxSession } from '../../../src/engine/onnx-session.js';
import { ExternalData } from '../../../src/models/compile/external-data.js';
import { Graph } from '../../../src/models/compile/graph.js';
import { temporaryFolder } from '../temporary-folder.js';

/** Writes the graph that `build` makes and loads it. The session is closed when the test ends. */
export async function openGraph(build: (graph: Graph) => Promise<void> | void): Promise<OnnxSession> {
  const folder = await temporaryFolder();
  const data = await ExternalData.create(join(folder, 'weights'));
  const graph = new Graph(data, 'weights');
  await build(graph);
  await data.close();
  await writeFile(join(folder, 'graph.onnx'), graph.encode());
  const session = await OnnxSession.open(join(folder, 'graph.onnx'), { threads: 1 });
  onTestFinished(() => session.close());
  return session;
}
