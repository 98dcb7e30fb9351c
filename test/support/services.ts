/** Starts what every test file shares. */
export default async function setup(): Promise<() => Promise<void>> {
  return async () => {};
}
