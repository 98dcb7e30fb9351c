import { EventEmitter, once } from 'node:events';
import { type Frame, frameMessageSchema } from '../../../src/contract/frame.js';
import { replyChannel } from '../../../src/contract/names.js';
import type { Channel } from '../../../src/platform/backplane/backplane.js';

const lastTypes: readonly Frame['type'][] = ['done', 'ranked', 'failed', 'cancelled'];

/** Everything one API process is told. */
export class ReplyLog {
  /** One array of frames per message. */
  readonly messages: Frame[][] = [];
  readonly #heard = new EventEmitter();

  static async listen(channel: Channel, apiId: string): Promise<ReplyLog> {
    const log = new ReplyLog();
    await channel.subscribe(replyChannel(apiId), (message) => {
      log.messages.push(frameMessageSchema.parse(JSON.parse(message)).frames);
      log.#heard.emit('message');
    });
    return log;
  }

  get frames(): Frame[] {
    return this.messages.flat();
  }

  framesOf(id: string): Frame[] {
    return this.frames.filter((frame) => frame.id === id);
  }

  /** The text of a choice so far. */
  textOf(id: string, choice = 0): string {
    return this.framesOf(id)
      .flatMap((frame) => (frame.type === 'delta' && frame.choice === choice ? [frame.text] : []))
      .join('');
  }

  /** Resolves once what was heard meets the condition. */
  async until(isMet: (log: ReplyLog) => boolean): Promise<void> {
    while (!isMet(this)) await once(this.#heard, 'message');
  }

  /** The last frame of a request; waits for it. */
  async ending(id: string): Promise<Frame> {
    const isLast = (frame: Frame) => frame.id === id && lastTypes.includes(frame.type);
    await this.until((log) => log.frames.some(isLast));
    return this.frames.find(isLast)!;
  }
}
