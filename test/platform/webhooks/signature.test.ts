import { createHmac } from 'node:crypto';
import { expect, it } from 'vitest';
import { createWebhookSecret, signatureHeaders } from '../../../src/platform/webhooks/signature.js';

const message = { id: 'msg_1', sentAt: new Date(1_614_265_330_500), body: '{"test": 2432232314}' };

it('a signature is over id, time in seconds and body', () => {
  const key = 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  const expected = createHmac('sha256', Buffer.from(key, 'base64'))
    .update('msg_1.1614265330.{"test": 2432232314}')
    .digest('base64');
  expect(signatureHeaders(message, `whsec_${key}`)).toEqual({
    'webhook-id': 'msg_1',
    'webhook-timestamp': '1614265330',
    'webhook-signature': `v1,${expected}`,
  });
});

it('a signature is the one that the specification gives as its example', () => {
  const example = {
    id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    sentAt: new Date(1_614_265_330_000),
    body: message.body,
  };
  const headers = signatureHeaders(example, 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw');
  expect(headers['webhook-signature']).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
});

it('no two secrets are the same', () => {
  expect(createWebhookSecret()).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(createWebhookSecret()).not.toBe(createWebhookSecret());
});
