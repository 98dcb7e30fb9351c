import { Random } from '../../src/engine/random.js';
import { drawFrom, type Range } from './range.js';

/** Common words, which most vocabularies hold as one token each. */
const words =
  `about above across after again against all also always among and animal another answer any area around ask
away back be because become before began best better between big bird black blue boat body book both box boy bring
brought build but call came can car carry change children city clear close cold color come complete could country
course cover cut dark day deep did different do dog door down draw drive dry each early earth ease east eat end enough
even ever every example eye face fact family far farm fast father feet few field figure final find fine fire first fish
five fly follow food for force form found four free friend from front full game gave get girl give go gold good great
green ground group grow half hand happen hard have head hear heat help here high hold home horse hot hour house hundred
idea if in inch interest island it just keep kind king know land language large last late laugh lead learn leave left
less letter life light like line list listen little live long look love low machine made make man many map mark may mean
measure might mile mind minute money moon more morning most mother mountain move much music must name near need never
new next night north note nothing notice now number object ocean off often old on once one only open order other our out
over own page paper part pass pattern people perhaps person picture piece place plain plan plane plant play point power
press problem produce product pull put question quick rain ran reach read ready real record red remember rest right
river road rock room round rule run said same saw say school science sea second see seem sentence serve set several
shape ship short should show side simple since sing sit six size sleep slow small snow so some song soon sound south
space special spell stand star start state stay step still stop story street strong study such sun sure surface table
tail take talk teach tell ten test that their them then there these they thing think third this those thought thousand
three through time to together told too took top toward town travel tree true try turn two under unit until up upon use
usual very voice vowel wait walk want war warm was watch water way week well went west what wheel where which while
white whole whose why wide will wind with wonder wood word work world would write year young`.split(/\s+/);

/** What the requests of a run have in common. The same settings, seed and index give the same text everywhere. */
export interface PromptOptions {
  readonly seed: number;
  readonly words: Range;
}

/** Text of random words, unlike that of any other index from its first words on, so that no cache serves it. */
export function drawText(index: number, { seed, words: length }: PromptOptions): string {
  return write(new Random(seed, index), length);
}

/** A user's message, and how long its answer may be. */
export function drawPrompt(
  index: number,
  options: PromptOptions & { readonly maxTokens: Range },
): { content: string; maxTokens: number } {
  const random = new Random(options.seed, index);
  const maxTokens = drawFrom(options.maxTokens, random);
  return { content: write(random, options.words), maxTokens };
}

/** A query and the documents to rank by it. */
export function drawRanking(
  index: number,
  options: PromptOptions & { readonly documents: Range },
): { query: string; documents: string[] } {
  const random = new Random(options.seed, index);
  const count = drawFrom(options.documents, random);
  const query = write(random, { min: 8, max: 8 });
  return { query, documents: Array.from({ length: count }, () => write(random, options.words)) };
}

function write(random: Random, length: Range): string {
  const count = drawFrom(length, random);
  const text = Array.from({ length: count }, () => words[Math.floor(random.next() * words.length)]);
  return `${text.join(' ')}.`;
}
