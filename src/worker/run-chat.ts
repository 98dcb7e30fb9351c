import type { ChatJob } from '../contract/job.js';
import type { TokenEvent } from '../engine/request.js';
import type { DecoderManifest } from '../models/manifest.js';
import { abortable } from '../platform/abortable.js';
import { ChatTemplate } from './chat-template.js';
import { Choice } from './choice.js';
import type { EngineRuns, RunControl } from './engine-runs.js';
import type { HeldRequest } from './held-request.js';
import { PromptReader } from './prompt-reader.js';
import { requiresCalls } from './reply-form.js';
import { type ReplyGrammars, spelledTokens } from './reply-grammars.js';
import type { Reservations } from './reservations.js';
import { resolveSampling } from './sampling.js';
import type { Tokenizer } from './tokenizer.js';

export interface ChatRunnerOptions {
  readonly manifest: DecoderManifest;
  readonly tokenizer: Tokenizer;
  readonly runs: EngineRuns;
  readonly grammars: ReplyGrammars;
  /** Absent where there is no database: what was estimated is all that counts then, until the request ends. */
  readonly reservations?: Pick<Reservations, 'cover'> | undefined;
  /** Positions of prompt and completion together. */
  readonly contextLength: number;
  /** For requests that do not say how long the completion may be. */
  readonly defaultMaxTokens: number;
}

/** Answers chat requests: grammar, template, tokens, generation, text. */
export class ChatRunner {
  readonly #options: ChatRunnerOptions;
  readonly #template: ChatTemplate;
  readonly #prompts: PromptReader;

  /** @throws Error when the model's chat template is not a template. */
  constructor(options: ChatRunnerOptions) {
    const { manifest, tokenizer, contextLength } = options;
    this.#options = options;
    this.#prompts = new PromptReader({ tokenizer, contextLength });
    this.#template = new ChatTemplate({
      source: manifest.chatTemplate,
      beginText: manifest.beginText,
      endText: manifest.endText,
      specials: tokenizer.specials,
    });
  }

  /**
   * Sends the frames of the answer, the last included.
   * @throws ServiceError when the request cannot be answered; the reason of the request's signal when it ends early.
   */
  async run(job: ChatJob, request: HeldRequest): Promise<void> {
    const { manifest, tokenizer, runs, reservations, contextLength, defaultMaxTokens } = this.#options;
    const sampling = resolveSampling(job, manifest);
    const grammar = await abortable(this.#options.grammars.of(job, request.signal), request.signal);
    const tools = job.toolChoice === 'none' ? [] : (job.tools ?? []);
    const prompt = await this.#prompts.read(this.#template.render(job.messages, tools), request.signal);
    const room = contextLength - prompt.length;
    const maxTokens = Math.min(job.maxTokens ?? defaultMaxTokens, room);
    await reservations?.cover(request, prompt.length + job.n * maxTokens);
    const choices = Array.from(
      { length: job.n },
      () =>
        new Choice({
          tokenizer,
          stops: job.stop,
          logprobs: job.topLogprobs !== undefined,
          ...(tools.length > 0 && { tools: this.#toolOptions(job) }),
        }),
    );
    await runs.generate(
      {
        scope: job.caller?.accountId ?? '',
        prompt,
        maxTokens,
        choices: job.n,
        sampling,
        endTokens: manifest.endTokens,
        topLogprobs: job.topLogprobs,
        ...(grammar && { grammar }),
        priority: job.priority,
      },
      request.signal,
      (event, control) => {
        if (event.type === 'admitted') {
          request.admitted = true;
          request.spent = {
            ...request.spent,
            promptTokens: prompt.length,
            cachedTokens: event.cachedTokens,
          };
        }
        if (event.type === 'token') hearToken(event, { choices, request, control });
      },
    );
  }

  #toolOptions(job: ChatJob) {
    const { grammars, tokenizer } = this.#options;
    const format = grammars.formatOf(job);
    return { format, spelledTokens: spelledTokens(tokenizer, format), required: requiresCalls(job) };
  }
}

interface Answer {
  readonly choices: readonly Choice[];
  readonly request: HeldRequest;
  readonly control: RunControl;
}

function hearToken(event: TokenEvent, { choices, request, control }: Answer): void {
  const choice = choices[event.choice];
  // A choice that a stop sequence ended may get one more token from the step that was under way.
  if (choice === undefined || choice.finished) return;
  request.markFirstToken();
  request.spent = { ...request.spent, completionTokens: request.spent.completionTokens + 1 };

  const { delta, finish } = choice.push(event);
  if (delta !== undefined) request.reply.send({ type: 'delta', choice: event.choice, ...delta });
  if (finish === undefined) return;
  request.reply.send({ type: 'finish', choice: event.choice, reason: finish });

  const endedByEngine = event.finish !== undefined;
  if (choices.every(({ finished }) => finished)) {
    request.reply.send({ type: 'done', spent: request.spent, timings: request.timings() });
    control.finish({ cancel: !endedByEngine });
  } else if (!endedByEngine) {
    control.cancelChoice(event.choice);
  }
}
