import { createHmac, randomBytes } from 'node:crypto';

const prefix = 'whsec_';

/** A new secret, in the form of the Standard Webhooks specification. */
export function createWebhookSecret(): string {
  return prefix + randomBytes(32).toString('base64');
}

/**
 * The headers that prove where a webhook comes from: an HMAC-SHA-256 over id, time and body, as Standard Webhooks 1.0
 * has it.
 * @param message.id The same at every attempt, to recognize repeats by.
 */
export function signatureHeaders(
  message: { id: string; sentAt: Date; body: string },
  secret: string,
): Record<string, string> {
  const { id, body } = message;
  const timestamp = String(Math.floor(message.sentAt.getTime() / 1000));
  const key = Buffer.from(secret.slice(prefix.length), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
}
