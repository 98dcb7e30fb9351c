import { expect, test } from 'vitest';
import { describeBackplanes } from '../../support/backplanes.js';
import { forkTypeScript } from '../../support/typescript-child.js';

describeBackplanes('a closed backplane', (kit) => {
  test('does not hold its process open', async () => {
    const program = new URL('./closing-program.ts', import.meta.url);
    const child = forkTypeScript(program, [JSON.stringify(kit.settings)]);
    expect(await child.ended, child.output()).toBe(0);
  });
});
