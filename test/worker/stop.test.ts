import { expect, test } from 'vitest';
import { StopMatcher } from '../../src/worker/stop.js';

/** The text that may be sent after each piece, ended by `|` where a stop matched, else by the flushed rest. */
function run(stops: string[], pieces: string[]): string[] {
  const matcher = new StopMatcher(stops);
  const sent: string[] = [];
  for (const piece of pieces) {
    const { text, matched } = matcher.push(piece);
    sent.push(text);
    if (matched) return [...sent, '|'];
  }
  return [...sent, matcher.flush()];
}

test('text passes when there are no stop sequences', () => {
  expect(run([], ['one ', 'two'])).toEqual(['one ', 'two', '']);
});

test('the text ends before the stop sequence', () => {
  expect(run(['STOP'], ['one STOP two'])).toEqual(['one ', '|']);
});

test('a stop sequence is found across pieces, and its beginning is never sent', () => {
  expect(run(['STOP'], ['one S', 'TO', 'P two'])).toEqual(['one ', '', '', '|']);
});

test('what only looked like a stop sequence is sent once it cannot be one', () => {
  expect(run(['STOP'], ['one S', 'T', 'EP'])).toEqual(['one ', '', 'STEP', '']);
});

test('what is held back is sent when the choice ends otherwise', () => {
  expect(run(['STOP'], ['one ST'])).toEqual(['one ', 'ST']);
});

test('a sequence that overlaps itself is found', () => {
  expect(run(['aab'], ['a', 'a', 'a', 'b'])).toEqual(['', '', 'a', '', '|']);
});

test('only what may begin a sequence is held', () => {
  expect(run(['abcabd'], ['abcabc', 'abd'])).toEqual(['abc', '', '|']);
});

test('of two sequences the one complete first wins, however the text is cut', () => {
  expect(run(['abcd', 'bc'], ['abcd'])).toEqual(['a', '|']);
  expect(run(['abcd', 'bc'], ['a', 'b', 'c', 'd'])).toEqual(['', '', 'a', '|']);
});

test('of two sequences complete at once the longer wins', () => {
  expect(run(['c', 'abc'], ['xabc'])).toEqual(['x', '|']);
});

test('a sequence that is not the first to begin is still found', () => {
  expect(run(['abx', 'bc'], ['abc'])).toEqual(['a', '|']);
});

test('half a character is no stop sequence', () => {
  expect(run(['\ude80'], ['🚀'])).toEqual(['🚀', '']);
});

test('a sequence of characters outside the basic plane is found and none is split', () => {
  expect(run(['🚀🚀'], ['a🚀', '🚁🚀', '🚀'])).toEqual(['a', '🚀🚁', '', '|']);
});
