/** What to tell a person when listening failed. */
export function listenFailure(
  { host, port }: { host: string; port: number },
  { code, message }: NodeJS.ErrnoException,
): string {
  switch (code) {
    case 'EADDRINUSE':
      return `Port ${port} of ${host} is in use: stop what uses it, or choose another with HEADRACE_PORT.`;
    case 'EACCES':
      return `Port ${port} may not be used by this user: choose one above 1023 with HEADRACE_PORT.`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `HEADRACE_HOST is ${host}, which is not an address of this machine.`;
    default:
      return `Cannot listen on ${host}, port ${port}: ${message}.`;
  }
}
