/** The wall clock, in Unix milliseconds, as an argument: tests choose the time. */
export interface Clock {
  now(): number;
}
