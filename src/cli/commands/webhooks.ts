import { type Delivery, newWebhookSchema, type Webhook } from '../../contract/admin.js';
import {
  listDeliveries,
  listWebhooks,
  registerWebhook,
  removeWebhook,
} from '../../platform/webhooks/webhooks.js';
import type { Desk } from '../desk.js';
import { type Columns, minute, printRow, printRows } from '../listing.js';
import { parseInput } from '../parse-input.js';

const columns: Columns<Webhook> = {
  id: ({ id }) => id,
  url: ({ url }) => url,
  created: ({ created }) => minute(created),
};

const deliveryColumns: Columns<Delivery> = {
  id: ({ id }) => id,
  created: ({ created }) => minute(created),
  state: ({ state }) => state,
  attempts: ({ attempts }) => String(attempts.length),
  last: ({ attempts }) => attempts.at(-1)?.error ?? '',
  title: ({ title }) => title,
};

/** `headrace webhooks list`. */
export async function runListWebhooks(desk: Desk): Promise<void> {
  printRows(await listWebhooks(desk.database), columns, desk);
}

/** `headrace webhooks add`: the secret goes to standard output alone, so that it can be piped to where it is kept. */
export async function runAddWebhook(url: string, desk: Desk): Promise<void> {
  const { terminal, json } = desk;
  const webhook = await registerWebhook(parseInput(newWebhookSchema, { url }).url, desk);
  if (json) {
    printRow(webhook, columns, desk);
    return;
  }
  terminal.stderr.write(`Notices go to ${webhook.url}, signed with this secret. It is not shown again:\n`);
  terminal.stdout.write(`${webhook.secret}\n`);
}

/** `headrace webhooks remove`. */
export async function runRemoveWebhook(id: string, desk: Desk): Promise<void> {
  printRow(await removeWebhook(id, desk), columns, desk);
}

/** `headrace webhooks deliveries`. */
export async function runListDeliveries(id: string, { limit }: { limit: number }, desk: Desk): Promise<void> {
  printRows(await listDeliveries(desk.database, id, { limit }), deliveryColumns, desk);
}
