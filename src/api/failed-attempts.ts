import { isIPv6 } from 'node:net';

/** Wrong keys from one address before it has to wait, and how soon it may try another after that. */
const burst = 30;
const refillMs = 1_000;

/** Addresses remembered; beyond it the one is forgotten whose last failure is longest ago. */
const maxAddresses = 10_000;

/**
 * How often each address has sent a key that does not work: a bucket that each failure takes from and that time fills
 * again. Memory is bounded.
 */
export class FailedAttempts {
  readonly #now: () => number;
  /** When the bucket of an address will be full again, by `now`; in the order of the last failures. */
  readonly #fullAt = new Map<string, number>();

  /** @param now Milliseconds that only ever grow. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Seconds until this address may try another unknown key; 0 when it may now. */
  waitSeconds(address: string): number {
    const fullAt = this.#fullAt.get(groupOf(address));
    if (fullAt === undefined) return 0;
    const missing = Math.max(0, fullAt - this.#now()) / refillMs;
    return missing <= burst - 1 ? 0 : Math.ceil(((missing - (burst - 1)) * refillMs) / 1_000);
  }

  /** Returns whether this was the failure that emptied the bucket. */
  add(address: string): boolean {
    const group = groupOf(address);
    const fullAt = Math.max(this.#fullAt.get(group) ?? 0, this.#now()) + refillMs;
    this.#fullAt.delete(group);
    this.#fullAt.set(group, fullAt);
    if (this.#fullAt.size > maxAddresses) this.#fullAt.delete(this.#fullAt.keys().next().value!);
    const missing = (fullAt - this.#now()) / refillMs;
    return missing > burst - 1 && missing <= burst;
  }
}

/** One customer has a whole /64 of IPv6 addresses. */
function groupOf(address: string): string {
  if (!isIPv6(address) || address.includes('.')) return address;
  const [head = '', tail] = address.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail ? tail.split(':') : [];
  const zeros = tail === undefined ? 0 : 8 - before.length - after.length;
  return [...before, ...Array<string>(zeros).fill('0'), ...after].slice(0, 4).join(':');
}
