/** A cross-encoder's logit as a relevance within 0..1. */
export function sigmoid(logit: number): number {
  return 1 / (1 + Math.exp(-logit));
}

/** The cosine of two embeddings, moved from -1..1 to 0..1. An embedding of length zero points nowhere: 0.5. */
export function cosineRelevance(a: Float32Array, b: Float32Array): number {
  let dot = 0;
  let squareA = 0;
  let squareB = 0;
  for (let index = 0; index < a.length; index++) {
    const [x, y] = [a[index]!, b[index]!];
    dot += x * y;
    squareA += x * x;
    squareB += y * y;
  }
  const lengths = Math.sqrt(squareA * squareB);
  const cosine = lengths === 0 ? 0 : dot / lengths;
  return Math.min(1, Math.max(0, (cosine + 1) / 2));
}
