/** Takes its mean away from each row of a matrix, in place. */
export function centerRows(matrix: Float32Array, columns: number): Float32Array {
  for (let row = 0; row < matrix.length; row += columns)
    center(matrix, { first: row, step: 1, count: columns });
  return matrix;
}

/** Takes its mean away from each column of a matrix, in place. */
export function centerColumns(matrix: Float32Array, columns: number): Float32Array {
  const count = matrix.length / columns;
  for (let column = 0; column < columns; column++) center(matrix, { first: column, step: columns, count });
  return matrix;
}

function center(
  numbers: Float32Array,
  { first, step, count }: { readonly first: number; readonly step: number; readonly count: number },
): void {
  const end = first + step * count;
  let sum = 0;
  for (let at = first; at < end; at += step) sum += numbers[at]!;
  for (let at = first; at < end; at += step) numbers[at]! -= sum / count;
}
