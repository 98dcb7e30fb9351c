import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildEncoderGraph } from '../../src/models/compile/encoder-graph.js';
import { ExternalData } from '../../src/models/compile/external-data.js';
import { float32Projection } from '../../src/models/compile/float32-projection.js';
import { Graph } from '../../src/models/compile/graph.js';
import { openCheckpoint } from '../../src/models/compile/open-checkpoint.js';
import { RowReaches } from '../../src/models/compile/row-reaches.js';

const fixtures = fileURLToPath(new URL('../fixtures/encoder/', import.meta.url));

/** A graph whose output has the name that exporters give it. */
class PublishedGraph extends Graph {
  override output(...[, ...rest]: Parameters<Graph['output']>): void {
    super.output('logits', ...rest);
  }
}

/** Makes in `folder` what a cross-encoder of the fixtures would be on the hub, were it published as a graph alone. */
export async function writePublishedEncoder(fixture: string, folder: string): Promise<void> {
  await cp(join(fixtures, fixture), folder, { recursive: true });
  await rm(join(folder, 'model.safetensors'));
  await mkdir(join(folder, 'onnx'));
  const checkpoint = await openCheckpoint(join(fixtures, fixture));
  const data = await ExternalData.create(join(folder, 'onnx/model.onnx_data'));
  try {
    const { config } = checkpoint;
    if (config.kind !== 'encoder') throw new Error(`${fixture} is not an encoder`);
    const graph = new PublishedGraph(data, 'model.onnx_data');
    await buildEncoderGraph(graph, {
      tensors: checkpoint,
      config,
      projection: float32Projection,
      reaches: new RowReaches(),
      onProgress: () => {},
      signal: new AbortController().signal,
    });
    await writeFile(join(folder, 'onnx/model.onnx'), graph.encode());
  } finally {
    await data.close();
    await checkpoint.close();
  }
}
