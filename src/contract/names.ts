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
