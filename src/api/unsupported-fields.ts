import type { ChatRequest } from '../contract/chat.js';
import { ServiceError } from '../contract/errors.js';

/**
 * Refuses the fields of the contract that no worker acts on. Values that ask for nothing are accepted, because
 * clients send them.
 * @throws ServiceError invalidParameter
 */
export function refuseUnsupportedFields(request: ChatRequest): void {
  const used: Partial<Record<keyof ChatRequest, boolean>> = {
    tools: (request.tools?.length ?? 0) > 0,
    tool_choice:
      request.tool_choice != null && request.tool_choice !== 'none' && request.tool_choice !== 'auto',
    response_format: request.response_format != null && request.response_format.type !== 'text',
    n: request.n != null && request.n > 1,
    logprobs: request.logprobs === true,
    top_logprobs: request.top_logprobs != null && request.top_logprobs > 0,
    logit_bias: Object.keys(request.logit_bias ?? {}).length > 0,
  };
  const field = Object.entries(used).find(([, isUsed]) => isUsed)?.[0];
  if (field !== undefined) throw new ServiceError('invalidParameter', `${field}: not supported yet`);
}
