/**
 * The names that processes meet under. Queue keys share one hash tag so that a Redis Cluster keeps every key of
 * the queue in one slot.
 */

/** Prefix of every key that BullMQ writes; the braces are Redis Cluster's hash tag. */
export const keyPrefix = '{headrace}';

/** The queue of one model. BullMQ forbids `:` in queue names, so anything unusual is percent-encoded. */
export function queueName(modelId: string): string {
  return encodeURIComponent(modelId).replaceAll(':', '%3A');
}

/** A queue of tasks that are no model's: percent-encoding leaves no `@` in the name of a model's queue. */
export function taskQueueName(name: string): string {
  return `@${name}`;
}

/** The tasks that each deliver one notice to one webhook; the id of a task is that of its delivery. */
export const webhookTasks = 'webhooks';

/** The channel on which one API process receives the frames of its own requests. */
export function replyChannel(apiId: string): string {
  return `headrace.reply.${apiId}`;
}

/** The channel on which API processes speak to every worker of one model. */
export function controlChannel(modelId: string): string {
  return `headrace.control.${queueName(modelId)}`;
}

/** The channel on which every process says, about once a second, that it is alive. */
export const presenceChannel = 'headrace.presence';

/** The channel on which every API process hears that keys or accounts have changed, and asks for them again. */
export const keysChannel = 'headrace.keys';

/** The channel on which every process hears that the state of a model has changed, and reads it again. */
export const catalogueChannel = 'headrace.catalogue';
