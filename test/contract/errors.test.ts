import { describe, expect, it } from 'vitest';
import { type ErrorKind, errorBodySchema, errorTable, ServiceError } from '../../src/contract/errors.js';

const kinds = Object.keys(errorTable) as ErrorKind[];

/** What OpenAI's API calls an error of a status. */
const types: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'invalid_request_error',
  405: 'invalid_request_error',
  409: 'invalid_request_error',
  413: 'invalid_request_error',
  415: 'invalid_request_error',
  429: 'rate_limit_error',
  500: 'server_error',
  503: 'server_error',
  504: 'server_error',
};

describe("an error's body", () => {
  it.each(kinds)('says %s twice: as this API does, and as OpenAI does', (kind) => {
    const { status, code } = errorTable[kind];
    const body = new ServiceError(kind, 'something: is wrong').toBody();
    expect(errorBodySchema.strict().parse(body)).toEqual(body);
    expect(body).toMatchObject({ code, message: 'something: is wrong', data: null });
    expect(body.error).toMatchObject({ message: 'something: is wrong', type: types[status] });
  });

  it.each([
    ['modelNotFound', 'model_not_found'],
    ['unauthorized', 'invalid_api_key'],
    ['tpmLimit', 'rate_limit_exceeded'],
    ['rpdLimit', 'rate_limit_exceeded'],
    ['invalidParameter', null],
    ['internal', null],
  ] as const)("has OpenAI's code where it has one: %s, %s", (kind, code) => {
    expect(new ServiceError(kind).toBody().error.code).toBe(code);
  });

  it.each([
    ['top_p: must be at most 1', 'top_p'],
    ['messages[0].role: is required', 'messages[0].role'],
    ['messages[0].content[12].image_url.url: is required', 'messages[0].content[12].image_url.url'],
    ['logit_bias["a: \\"b\\""]: must be a token id', 'logit_bias["a: \\"b\\""]'],
    ['tools[2].function.parameters.$defs.x-y: is not supported', 'tools[2].function.parameters.$defs.x-y'],
    ['Idempotency-Key: must be shorter', 'Idempotency-Key'],
    ['body: malformed JSON', null],
    ['request: is not valid HTTP', null],
    ['headers.host: is required', null],
    ['A parameter is invalid.', null],
    ['two words: are no path', null],
    ['', null],
  ])('names the parameter that the message %j begins with', (message, param) => {
    expect(new ServiceError('invalidParameter', message).toBody().error.param).toBe(param);
  });

  it.each([
    ['modelNotFound', 'model'],
    ['unauthorized', null],
    ['overloaded', null],
  ] as const)('names no parameter for other errors than those in one: %s', (kind, param) => {
    expect(new ServiceError(kind, 'top_p: is not read').toBody().error.param).toBe(param);
  });
});
