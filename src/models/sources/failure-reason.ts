import { HubApiError } from '@huggingface/hub';

/** What went wrong, in one line for a person. */
export function failureReason(error: unknown): string {
  if (error instanceof HubApiError) {
    return hubReason(error.statusCode);
  }
  if (!(error instanceof Error)) {
    return String(error);
  }
  // fetch says only "fetch failed"; a connection that failed on every address of a name has its reason in its code.
  const cause = error.cause;
  if (error.message === 'fetch failed' && cause instanceof Error) {
    return cause.message || String((cause as NodeJS.ErrnoException).code);
  }
  return error.message.split('\n', 1)[0]!;
}

function hubReason(status: number): string {
  switch (status) {
    case 401:
    case 403:
      return `HTTP ${status}: there is no such repository, or it needs a token that may read it (HF_TOKEN)`;
    case 404:
      return 'HTTP 404: there is no such repository or revision';
    default:
      return `HTTP ${status}`;
  }
}
