import type { Command } from 'commander';
import { Option } from 'commander';
import { limitNames, modelAccesses, modelStates } from '../contract/admin.js';
import type { Desk } from './desk.js';
import { integer, limitValue, yesOrNo } from './option-values.js';

/** Runs `work` with what an operator's command needs. */
export type Administer = (options: { json: boolean }, work: (desk: Desk) => Promise<void>) => Promise<void>;

const limit = new Option('--limit <n>', 'how many to show').argParser(integer(1, 100)).default(20);

/** Adds the commands of operators, each loading its own module when it runs. */
export function addAdministration(program: Command, administer: Administer): void {
  addAccounts(program.command('accounts').description('who uses the service'), administer);
  addLimits(program.command('limits').description('how much accounts may use'), administer);
  addNotices(program.command('notices').description('what users are told'), administer);
  addWebhooks(program.command('webhooks').description('where notices are sent'), administer);
  withJson(program.command('usage'))
    .description('show what an account has used')
    .argument('<account>', 'its id or name')
    .option('--start <time>', 'a date or a time (default: 30 days before the end)')
    .option('--end <time>', 'a date or a time (default: now)')
    .option('--group-by <names>', 'any of model, key and day, with commas between', 'model')
    .action((account, options) =>
      administer(options, async (desk) =>
        (await import('./commands/usage.js')).runUsage(account, options, desk),
      ),
    );
  withJson(program.command('audit'))
    .description('show who changed what')
    .addOption(limit)
    .option('--target <id>', 'only changes of the account, key, model, notice or webhook of this id')
    .action((options) =>
      administer(options, async (desk) => (await import('./commands/audit.js')).runAudit(options, desk)),
    );
}

/** Adds to the group `models` what decides about them. */
export function addModelAdministration(models: Command, administer: Administer): void {
  withJson(models.command('status'))
    .description('list the state of the models and who may use them')
    .action((options) =>
      administer(options, async (desk) => (await import('./commands/model-state.js')).runModelStatus(desk)),
    );
  withJson(models.command('set'))
    .description('put a model online or offline, deprecate it, or decide who may use it')
    .argument('<id>', 'the model')
    .addOption(new Option('--state <state>', 'whether it takes requests').choices(modelStates))
    .option('--sunset <time>', 'when a deprecated model stops: 2026-12-31T00:00:00Z')
    .addOption(new Option('--access <access>', 'who may use it').choices(modelAccesses))
    .option('--accounts <names...>', 'the accounts on its list, by id or name')
    .action((id, { json, ...wish }) =>
      administer({ json }, async (desk) =>
        (await import('./commands/model-state.js')).runSetModel(id, wish, desk),
      ),
    );
}

function addAccounts(accounts: Command, administer: Administer): void {
  const load = () => import('./commands/accounts.js');
  withJson(accounts.command('list'))
    .description('list the accounts')
    .action((options) => administer(options, async (desk) => (await load()).runListAccounts(desk)));
  withJson(accounts.command('show'))
    .description('show an account')
    .argument('<account>', 'its id or name')
    .action((id, options) => administer(options, async (desk) => (await load()).runShowAccount(id, desk)));
  withJson(accounts.command('create'))
    .description('create an account')
    .argument('<name>', 'its name')
    .option('--verified', 'it is verified by real name', false)
    .action((name, { json, verified }) =>
      administer({ json }, async (desk) => (await load()).runCreateAccount({ name, verified }, desk)),
    );
  withJson(accounts.command('set'))
    .description('change an account')
    .argument('<account>', 'its id or name')
    .option('--name <name>', 'its new name')
    .option('--disabled <yes|no>', 'whether its requests are refused', yesOrNo)
    .option('--verified <yes|no>', 'whether it is verified by real name', yesOrNo)
    .action((id, { json, ...wish }) =>
      administer({ json }, async (desk) => (await load()).runSetAccount(id, wish, desk)),
    );
}

function addLimits(limits: Command, administer: Administer): void {
  const load = () => import('./commands/limits.js');
  withJson(limits.command('list'))
    .description('list the limits that differ from those of the catalogue')
    .option('--account <account>', 'only those of this account')
    .action((options) => administer(options, async (desk) => (await load()).runListLimits(options, desk)));
  const set = withJson(limits.command('set'))
    .description('set limits of an account')
    .argument('<account>', 'its id or name')
    .option('--model <id>', 'for this model (default: those without limits of their own)');
  for (const name of limitNames) {
    set.option(`--${name} <n>`, `${name.toUpperCase()}; none, or usual for the catalogue's`, limitValue);
  }
  set.action((id, options) =>
    administer(options, async (desk) => (await load()).runSetLimits(id, options, desk)),
  );
}

function addNotices(notices: Command, administer: Administer): void {
  const load = () => import('./commands/notices.js');
  withJson(notices.command('list'))
    .description('list the notices, the newest first')
    .addOption(limit)
    .action((options) => administer(options, async (desk) => (await load()).runListNotices(options, desk)));
  withJson(notices.command('create'))
    .description('tell everyone, or one account, something')
    .argument('<title>', 'one line')
    .argument('<text>', 'what there is to say')
    .option('--account <account>', 'the only account that it is for')
    .option('--model <id>', 'the model that it is about')
    .action((title, text, { json, ...about }) =>
      administer({ json }, async (desk) => (await load()).runCreateNotice({ title, text, ...about }, desk)),
    );
}

function addWebhooks(webhooks: Command, administer: Administer): void {
  const load = () => import('./commands/webhooks.js');
  withJson(webhooks.command('add'))
    .description('have every notice sent to an address, and print the secret it is signed with, this once')
    .argument('<url>', 'where to')
    .action((url, options) => administer(options, async (desk) => (await load()).runAddWebhook(url, desk)));
  withJson(webhooks.command('list'))
    .description('list the webhooks')
    .action((options) => administer(options, async (desk) => (await load()).runListWebhooks(desk)));
  withJson(webhooks.command('remove'))
    .description('remove a webhook and its log')
    .argument('<id>', 'its id')
    .action((id, options) => administer(options, async (desk) => (await load()).runRemoveWebhook(id, desk)));
  withJson(webhooks.command('deliveries'))
    .description('show what was sent to a webhook and how that went, the newest first')
    .argument('<id>', 'its id')
    .addOption(limit)
    .action((id, options) =>
      administer(options, async (desk) => (await load()).runListDeliveries(id, options, desk)),
    );
}

function withJson(command: Command): Command {
  return command.option('--json', 'print JSON', false);
}
