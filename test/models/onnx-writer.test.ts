import { expect, test } from 'vitest';
import { encodeModel, type OnnxModel } from '../../src/models/onnx-writer.js';

const empty: OnnxModel = { nodes: [], initializers: [], inputs: [], outputs: [] };

/** The bytes of a protobuf field with a length: its tag, its length, its contents. */
const field = (number: number, contents: readonly number[]) => [
  (number << 3) | 2,
  contents.length,
  ...contents,
];
const integer = (number: number, value: number) =>
  number < 16 ? [number << 3, value] : [((number << 3) & 0x7f) | 0x80, number >> 4, value];
const ascii = (text: string) => [...Buffer.from(text)];

const graphHeader = field(2, ascii('main'));

function encodesGraph(model: Partial<OnnxModel>, before: readonly number[], after: readonly number[]) {
  const graph = field(7, [...before, ...graphHeader, ...after]);
  const expected = [
    ...integer(1, 11),
    ...field(2, ascii('headrace')),
    ...graph,
    ...field(8, [...field(1, []), ...integer(2, 24)]),
    ...field(8, [...field(1, ascii('com.microsoft')), ...integer(2, 1)]),
  ];
  expect([...encodeModel({ ...empty, ...model })]).toEqual(expected);
}

test('an empty model names its version, its producer and its operator sets', () => {
  encodesGraph({}, [], []);
});

test('a node keeps the order of its inputs, and its domain', () => {
  const node = {
    name: 'n',
    domain: 'd',
    operator: 'Op',
    inputs: ['a', '', 'b'],
    outputs: ['c'],
    attributes: {},
  };
  encodesGraph(
    { nodes: [node] },
    field(1, [
      ...field(1, ascii('a')),
      ...field(1, []),
      ...field(1, ascii('b')),
      ...field(2, ascii('c')),
      ...field(3, ascii('n')),
      ...field(4, ascii('Op')),
      ...field(7, ascii('d')),
    ]),
    [],
  );
});

test('integers, floats and lists of integers are told apart by the type of the attribute', () => {
  const node = {
    name: 'n',
    domain: '',
    operator: 'Op',
    inputs: [],
    outputs: [],
    attributes: {
      i: { kind: 'int', value: 1 },
      f: { kind: 'float', value: 1 },
      l: { kind: 'ints', value: [2, 3] },
      s: { kind: 'string', value: 'S' },
    },
  } as const;
  encodesGraph(
    { nodes: [node] },
    field(1, [
      ...field(3, ascii('n')),
      ...field(4, ascii('Op')),
      ...field(5, [...field(1, ascii('i')), ...integer(3, 1), ...integer(20, 2)]),
      ...field(5, [...field(1, ascii('f')), (2 << 3) | 5, 0, 0, 0x80, 0x3f, ...integer(20, 1)]),
      ...field(5, [...field(1, ascii('l')), ...integer(8, 2), ...integer(8, 3), ...integer(20, 7)]),
      ...field(5, [...field(1, ascii('s')), ...field(4, ascii('S')), ...integer(20, 3)]),
      ...field(7, []),
    ]),
    [],
  );
});

test('a branch is a graph of its own, named by its attribute, with its outputs', () => {
  const inner = { name: 'i', domain: '', operator: 'Op', inputs: ['x'], outputs: ['y'], attributes: {} };
  const node = {
    name: 'n',
    domain: '',
    operator: 'If',
    inputs: [],
    outputs: [],
    attributes: { b: { kind: 'graph', nodes: [inner], outputs: ['y', 'x'] } },
  } as const;
  const innerNode = field(1, [
    ...field(1, ascii('x')),
    ...field(2, ascii('y')),
    ...field(3, ascii('i')),
    ...field(4, ascii('Op')),
    ...field(7, []),
  ]);
  const outputs = ['y', 'x'].flatMap((name) => field(12, field(1, ascii(name))));
  const branch = [...innerNode, ...field(2, ascii('b')), ...outputs];
  encodesGraph(
    { nodes: [node] },
    field(1, [
      ...field(3, ascii('n')),
      ...field(4, ascii('If')),
      ...field(5, [...field(1, ascii('b')), ...field(6, branch), ...integer(20, 5)]),
      ...field(7, []),
    ]),
    [],
  );
});

test('a negative integer is ten bytes, as int64 asks', () => {
  const node = {
    name: '',
    domain: '',
    operator: 'Op',
    inputs: [],
    outputs: [],
    attributes: { axis: { kind: 'int', value: -1 } },
  } as const;
  const bytes = Buffer.from(encodeModel({ ...empty, nodes: [node] }));
  expect(bytes.includes(Buffer.from([3 << 3, ...new Array(9).fill(0xff), 1]))).toBe(true);
});

test('a small tensor carries its bytes', () => {
  const tensor = { name: 't', type: 'int8', dims: [2, 1], data: Uint8Array.of(5, 6) } as const;
  encodesGraph(
    { initializers: [tensor] },
    [],
    field(5, [
      ...integer(1, 2),
      ...integer(1, 1),
      ...integer(2, 3),
      ...field(8, ascii('t')),
      ...field(9, [5, 6]),
    ]),
  );
});

test('an external tensor says where its bytes are', () => {
  const data = { location: 'w', offset: 8192, length: 4 };
  const entry = (key: string, value: string) =>
    field(13, [...field(1, ascii(key)), ...field(2, ascii(value))]);
  encodesGraph(
    { initializers: [{ name: 't', type: 'float32', dims: [1], data }] },
    [],
    field(5, [
      ...integer(1, 1),
      ...integer(2, 1),
      ...field(8, ascii('t')),
      ...entry('location', 'w'),
      ...entry('offset', '8192'),
      ...entry('length', '4'),
      ...integer(14, 1),
    ]),
  );
});

test('an offset beyond 4 GB is written in full', () => {
  const data = { location: 'w', offset: 5 * 2 ** 40, length: 4 };
  const bytes = encodeModel({ ...empty, initializers: [{ name: 't', type: 'float32', dims: [1], data }] });
  expect(Buffer.from(bytes).includes('5497558138880')).toBe(true);
});

test('dimensions of inputs and outputs are numbers or names', () => {
  const value = { name: 'x', type: 'int64', dims: ['B', 3] } as const;
  const type = field(1, [
    ...integer(1, 7),
    ...field(2, [...field(1, field(2, ascii('B'))), ...field(1, integer(1, 3))]),
  ]);
  const contents = [...field(1, ascii('x')), ...field(2, type)];
  encodesGraph({ inputs: [value], outputs: [value] }, [], [...field(11, contents), ...field(12, contents)]);
});

test('a sequence of tensors is another type', () => {
  const value = { name: 'x', type: 'int64', dims: [2], sequence: true } as const;
  const tensor = field(1, [...integer(1, 7), ...field(2, field(1, integer(1, 2)))]);
  const contents = [...field(1, ascii('x')), ...field(2, field(4, field(1, tensor)))];
  encodesGraph({ outputs: [value] }, [], field(12, contents));
});
