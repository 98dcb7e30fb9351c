import { Command, Option, type OutputConfiguration } from 'commander';
import { weightFormats } from '../models/manifest.js';
import { type Administer, addAdministration, addModelAdministration } from './administration.js';
import { decimal, duration, integer, oneOrMoreOf, serviceUrl } from './option-values.js';

/** Where client commands send requests; the local service with its development key when left out. */
export interface ServiceOptions {
  readonly url?: string;
  readonly key?: string;
}

export interface ChatArguments extends ServiceOptions {
  readonly system?: string;
  readonly model?: string;
  readonly maxTokens?: number;
  readonly temperature?: number;
  readonly seed?: number;
  readonly stream: boolean;
  readonly json: boolean;
}

export interface RerankArguments extends ServiceOptions {
  readonly query: string;
  readonly documents: string;
  readonly topN?: number;
  readonly returnDocuments: boolean;
  readonly model?: string;
  readonly json: boolean;
}

export interface KeyArguments {
  readonly account: string;
  /** How long the key works, in milliseconds. */
  readonly expiresIn?: number;
  readonly json: boolean;
}

export interface CompileArguments {
  /** Instead of what the catalogue says. */
  readonly weights?: (typeof weightFormats)[number];
  readonly json: boolean;
}

export interface CheckArguments {
  readonly cases: string;
  readonly weights: (typeof weightFormats)[number];
}

export interface EvaluateArguments {
  readonly text?: string;
  readonly formats: (typeof weightFormats)[number][];
  readonly json: boolean;
}

/** What each command does. */
export interface Actions {
  serve(): Promise<void>;
  api(): Promise<void>;
  worker(options: { model: string }): Promise<void>;
  migrate(): Promise<void>;
  chat(message: string, options: ChatArguments): Promise<void>;
  rerank(options: RerankArguments): Promise<void>;
  createKey(name: string, options: KeyArguments): Promise<void>;
  listKeys(options: { json: boolean }): Promise<void>;
  revokeKey(id: string, options: { json: boolean }): Promise<void>;
  listModels(options: { json: boolean }): Promise<void>;
  pullModels(ids: string[], options: { json: boolean }): Promise<void>;
  compileModels(ids: string[], options: CompileArguments): Promise<void>;
  checkModel(source: string, options: CheckArguments): Promise<void>;
  evaluateModel(source: string, options: EvaluateArguments): Promise<void>;
  readonly administer: Administer;
}

/** The grammar of the command line. Commands end in `actions`; whoever parses catches commander's errors. */
export function buildProgram(
  actions: Actions,
  { version, output }: { version: string; output: OutputConfiguration },
): Command {
  const program = new Command('headrace')
    .description('A queue-first model inference service that a team runs itself.')
    .version(version)
    .exitOverride()
    .configureOutput(output)
    .showHelpAfterError();

  program
    .command('serve')
    .description('run everything on this machine: database, API and a worker per model')
    .action(() => actions.serve());
  program
    .command('api')
    .description('run one API process (needs DATABASE_URL)')
    .action(() => actions.api());
  program
    .command('worker')
    .description('run one worker process (needs DATABASE_URL or REDIS_URL)')
    .requiredOption('--model <id>', 'the model of the catalogue that it runs')
    .action((options) => actions.worker(options));
  program
    .command('migrate')
    .description('bring the schema of the database up to date')
    .action(() => actions.migrate());

  addClientCommands(program, actions);
  addKeyCommands(program.command('keys').description('API keys'), actions);
  const models = program.command('models').description('the models of the catalogue');
  addModelsCommands(models, actions);
  addModelAdministration(models, (options, work) => actions.administer(options, work));
  addAdministration(program, (options, work) => actions.administer(options, work));
  addModelCommands(program.command('model').description('one model'), actions);
  return program;
}

function addModelCommands(model: Command, actions: Actions): void {
  model
    .command('check')
    .description('compile a model and compare it with reference cases; exit code 1 when it differs')
    .argument('<source>', 'a folder in Hugging Face layout, or a .gguf file')
    .requiredOption('--cases <file>', 'the reference cases, JSON')
    .addOption(
      new Option('--weights <format>', 'how weights are stored').choices(weightFormats).default('float32'),
    )
    .action((source, options) => actions.checkModel(source, options));
  model
    .command('evaluate')
    .description(
      'measure what the formats of weights cost a chat model: perplexity and agreement with float32',
    )
    .argument(
      '<source>',
      'a folder in Hugging Face layout, a .gguf file, or the id of a model of the catalogue',
    )
    .option('--text <file>', 'the text that is predicted (default: several thousand words of English)')
    .option('--formats <list>', 'the formats, beside float32', oneOrMoreOf(weightFormats), [...weightFormats])
    .option('--json', 'print JSON', false)
    .action((source, options) => actions.evaluateModel(source, options));
}

function addClientCommands(program: Command, actions: Actions): void {
  const addServiceOptions = (command: Command) =>
    command
      .option('--url <url>', 'the service (default: HEADRACE_URL, else the local one)', serviceUrl)
      .option('--key <key>', 'the API key (default: HEADRACE_KEY, else the development key)');

  addServiceOptions(program.command('chat'))
    .description('ask a model and print its reply as it comes')
    .argument('<message>', 'what to say; - reads it from standard input')
    .option('--system <text>', 'a system message')
    .option('--model <id>', 'the model (default: the first chat model)')
    .option('--max-tokens <n>', 'the longest reply, in tokens', integer(1))
    .option('--temperature <t>', 'from 0, always the likeliest, to 2', decimal(0, 2))
    .option('--seed <n>', 'the same seed gives the same reply', integer(Number.MIN_SAFE_INTEGER))
    .option('--no-stream', 'print the reply when it is complete')
    .option('--json', "print the service's answer as one JSON object", false)
    .action((message, options) => actions.chat(message, options));
  addServiceOptions(program.command('rerank'))
    .description('sort the lines of a file by how well they answer a query')
    .requiredOption('--query <text>', 'the query')
    .requiredOption('--documents <file>', 'a document on each line; - reads standard input')
    .option('--top-n <n>', 'how many to show (default: all)', integer(1))
    .option('--return-documents', 'put the documents into the JSON', false)
    .option('--model <id>', 'the model (default: the first reranker)')
    .option('--json', "print the service's answer, `index` counting the file's lines from 0", false)
    .action((options) => actions.rerank(options));
}

function addKeyCommands(keys: Command, actions: Actions): void {
  keys
    .command('create')
    .description('create an API key and print it, this once')
    .argument('[name]', 'what it is for', 'default')
    .option('--account <name>', 'the account it speaks for, created if there is none', 'development')
    .option('--expires-in <time>', 'how long it works: 90d, 12h, 30m (default: for ever)', duration)
    .option('--json', 'print JSON', false)
    .action((name, options) => actions.createKey(name, options));
  keys
    .command('list')
    .description('list API keys')
    .option('--json', 'print JSON', false)
    .action((options) => actions.listKeys(options));
  keys
    .command('revoke')
    .description('make an API key useless, for good')
    .argument('<id>', 'its id, or the prefix that the list shows')
    .option('--json', 'print JSON', false)
    .action((id, options) => actions.revokeKey(id, options));
}

function addModelsCommands(models: Command, actions: Actions): void {
  models
    .command('list')
    .description('list the models of the catalogue and whether they are ready on this machine')
    .option('--json', 'print JSON', false)
    .action((options) => actions.listModels(options));
  models
    .command('pull')
    .description('fetch the files of models')
    .argument('[id...]', 'which ones (default: all)')
    .option('--json', 'print JSON', false)
    .action((ids, options) => actions.pullModels(ids, options));
  models
    .command('compile')
    .description('fetch and compile models')
    .argument('[id...]', 'which ones (default: all)')
    .addOption(
      new Option('--weights <format>', 'how weights are stored (default: what the catalogue says)').choices(
        weightFormats,
      ),
    )
    .option('--json', 'print JSON', false)
    .action((ids, options) => actions.compileModels(ids, options));
}
