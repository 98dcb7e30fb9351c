import { beforeEach, describe, expect, it } from 'vitest';
import { runCommandLine } from '../../src/cli/command-line.js';
import type { Actions } from '../../src/cli/program.js';
import { catalogue, useAdministration } from '../platform/support/administration.js';
import { TestTerminal } from './client/local-service.js';

const administration = useAdministration();

/** Runs a command line as an operator does, on a real database. */
async function headrace(...line: string[]) {
  const terminal = new TestTerminal();
  const administer: Actions['administer'] = ({ json }, work) =>
    work({ ...administration.context, loadCatalogue: async () => catalogue, terminal, json });
  const exitCode = await runCommandLine(line, {
    actions: { administer } as Actions,
    terminal,
    version: '1.2.3',
    isDebug: () => false,
  });
  return { exitCode, output: terminal.output, errors: terminal.errors };
}
const json = async (...line: string[]) => JSON.parse((await headrace(...line, '--json')).output);

beforeEach(async () => {
  const { client } = administration.database;
  await client.account.deleteMany();
  await client.modelState.deleteMany();
  await client.webhook.deleteMany();
  await client.notice.deleteMany();
});

describe('the commands of operators', () => {
  it('create, change and show accounts', async () => {
    expect(await json('accounts', 'create', 'team', '--verified')).toMatchObject({
      name: 'team',
      verified: true,
    });
    await headrace('accounts', 'set', 'team', '--disabled', 'yes', '--verified', 'no');
    expect(await json('accounts', 'show', 'team')).toMatchObject({ disabled: true, verified: false });
    const { output } = await headrace('accounts', 'list');
    expect(output).toMatch(/^id +name +state +verified +created\n[0-9a-f-]{36} +team +disabled +no +\d{4}-/);
  });

  it('set limits of an account, and take one back', async () => {
    await headrace('accounts', 'create', 'team');
    await headrace('limits', 'set', 'team', '--rpm', '5', '--tpd', 'none');
    await headrace('limits', 'set', 'team', '--rpm', 'usual');
    expect(await json('limits', 'list')).toEqual([
      {
        id: expect.any(String),
        account: 'team',
        model: null,
        rpm: null,
        rpd: null,
        tpm: null,
        tpd: -1,
        ipm: null,
        ipd: null,
      },
    ]);
    expect((await headrace('limits', 'list')).output).toMatch(/team +\(others\) +usual +usual +usual +none/);
  });

  it('show what an account has used', async () => {
    const { id } = await json('accounts', 'create', 'team');
    const spent = { requests: 2, failedRequests: 1, promptTokens: 5, completionTokens: 7, cachedTokens: 0 };
    const hour = new Date('2026-06-01T10:00:00Z');
    await administration.database.client.usageHour.create({
      data: { accountId: id, keyId: id, model: 'rerank', hour, ...spent },
    });
    const range = ['--start', '2026-06-01', '--end', '2026-06-02'];
    expect((await headrace('usage', 'team', ...range)).output).toMatch(
      /model +requests .*\nrerank +2 +1 +5 +7 +12\n/,
    );
    expect(await json('usage', 'team', ...range, '--group-by', 'day')).toMatchObject([{ day: '2026-06-01' }]);
  });

  it('deprecate a model and decide who may use it', async () => {
    await headrace('accounts', 'create', 'team');
    const line = ['--state', 'deprecated', '--sunset', '2099-01-01T00:00:00Z', '--access', 'listed'];
    await headrace('models', 'set', 'owner/chat', ...line, '--accounts', 'team');
    const [status] = await json('models', 'status');
    expect(status).toMatchObject({ state: 'deprecated', access: 'listed', accounts: [{ name: 'team' }] });
    expect((await headrace('models', 'status')).output).toMatch(
      /owner\/chat +chat +deprecated +2099-01-01 00:00 +listed +team\n *rerank +rerank +online/,
    );
  });

  it('write notices and show them', async () => {
    await headrace('notices', 'create', 'Maintenance', 'On Sunday.');
    expect(await json('notices', 'list')).toMatchObject([{ title: 'Maintenance', text: 'On Sunday.' }]);
  });

  it('print the secret of a webhook alone on standard output, once', async () => {
    const { output, errors } = await headrace('webhooks', 'add', 'https://example.org/hook');
    expect(output).toMatch(/^whsec_\S+\n$/);
    expect(errors).toContain('https://example.org/hook');
    const [webhook] = await json('webhooks', 'list');
    expect(JSON.stringify(webhook)).not.toContain(output.trim());
    await headrace('notices', 'create', 'Sent', 'Text');
    expect(await json('webhooks', 'deliveries', webhook.id)).toMatchObject([
      { title: 'Sent', state: 'pending' },
    ]);
    await headrace('webhooks', 'remove', webhook.id);
    expect(await json('webhooks', 'list')).toEqual([]);
  });

  it('are in the audit log under the name of who gave them', async () => {
    await headrace('accounts', 'create', 'noted');
    await headrace('accounts', 'set', 'noted', '--disabled', 'yes');
    const { output } = await headrace('audit', '--limit', '1');
    expect(output).toMatch(/cli:test +account\.update +[0-9a-f-]{36} +disabled=true\n/);
  });

  it.each([
    [['accounts', 'create', 'two\nlines'], 'name: must be text on one line'],
    [['accounts', 'show', 'nobody'], 'There is no account "nobody".'],
    [['models', 'set', 'another', '--state', 'offline'], 'Model does not exist.'],
    [['models', 'set', 'rerank', '--state', 'deprecated'], 'sunset: is required'],
    [['webhooks', 'add', 'ftp://example.org'], 'url: must be an http or https URL'],
    [['webhooks', 'remove', 'nothing'], 'There is no such webhook.'],
  ])('%j fails with one line: %s', async (line, message) => {
    const { exitCode, errors } = await headrace(...line);
    expect(exitCode).toBe(1);
    expect(errors).toContain(message);
    expect(errors.trimEnd()).not.toContain('\n');
  });

  it.each([
    [['accounts', 'set', 'team', '--disabled', 'maybe']],
    [['limits', 'set', 'team', '--rpm', '-1']],
    [['models', 'set', 'rerank', '--state', 'away']],
  ])('%j is a usage error', async (line) => {
    expect((await headrace(...line)).exitCode).toBe(2);
  });
});
