/** Of milliseconds, to one hundredth; `null` where nothing was measured. */
export interface Percentiles {
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
}

export function percentiles(values: readonly number[]): Percentiles {
  const sorted = Float64Array.from(values).sort();
  const at = (share: number) => {
    const value = quantile(sorted, share);
    return value === undefined ? null : Math.round(value * 100) / 100;
  };
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}

/** The middle value, or the mean of the middle two; undefined of nothing. */
export function median(values: readonly number[]): number | undefined {
  return quantile(Float64Array.from(values).sort(), 0.5);
}

/** Linear between the two nearest ranks (Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996, type 7). */
function quantile(sorted: Float64Array, share: number): number | undefined {
  const rank = (sorted.length - 1) * share;
  const below = sorted[Math.floor(rank)];
  const above = sorted[Math.ceil(rank)];
  return below === undefined || above === undefined ? undefined : below + (above - below) * (rank % 1);
}
