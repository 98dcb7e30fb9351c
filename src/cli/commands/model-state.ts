import { type ModelStatus, modelChangeSchema } from '../../contract/admin.js';
import { changeModel, listModelStatuses } from '../../platform/model-registry/change-model.js';
import type { Desk } from '../desk.js';
import { type Columns, minute, printRow, printRows } from '../listing.js';
import { parseInput } from '../parse-input.js';

const columns: Columns<ModelStatus> = {
  model: ({ model }) => model,
  task: ({ task }) => task,
  state: ({ state }) => state,
  sunset: ({ sunset }) => minute(sunset),
  access: ({ access }) => access,
  accounts: ({ accounts }) => accounts.map(({ name }) => name).join(', '),
};

/** `headrace models status`. */
export async function runModelStatus(desk: Desk): Promise<void> {
  printRows(await listModelStatuses(desk.database, await desk.loadCatalogue()), columns, desk);
}

/** `headrace models set`. */
export async function runSetModel(
  id: string,
  wish: { state?: string; sunset?: string; access?: string; accounts?: string[] },
  desk: Desk,
): Promise<void> {
  const catalogue = await desk.loadCatalogue();
  const status = await changeModel(id, parseInput(modelChangeSchema, wish), { ...desk, catalogue });
  printRow(status, columns, desk);
}
