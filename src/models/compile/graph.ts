import {
  type Attribute,
  type DataType,
  dataTypes,
  encodeModel,
  type OnnxInitializer,
  type OnnxNode,
  type OnnxValue,
} from '../onnx-writer.js';
import type { ExternalData } from './external-data.js';

/** The name of a tensor that flows through the graph. */
export type Value = string;

export const int = (value: number): Attribute => ({ kind: 'int', value });
export const float = (value: number): Attribute => ({ kind: 'float', value });
export const string = (value: string): Attribute => ({ kind: 'string', value });
export const ints = (...value: readonly number[]): Attribute => ({ kind: 'ints', value });

/** A value that a graph gives, and what it is called outside. */
export interface GraphOutput extends OnnxValue {
  readonly value: Value;
}

type Attributes = Readonly<Record<string, Attribute>>;
type TensorData = Float32Array | Int8Array | Uint8Array | BigInt64Array;

/** An input that an operator can do without. */
export const absent: Value = '';

/** Weights up to this many bytes stand in the graph's own file; larger ones in the weights file. */
const inlineBytes = 256;

/**
 * An ONNX graph under construction. Operators are named `Softmax`, or `com.microsoft.FusedMatMul` with their domain;
 * each call adds a node and returns the value it computes.
 */
export class Graph {
  readonly #weights: ExternalData;
  readonly #weightsName: string;
  /** Nodes of the graph, or of the branch that is being built. */
  #nodes: OnnxNode[] = [];
  #nodeCount = 0;
  readonly #initializers: OnnxInitializer[] = [];
  readonly #inputs: OnnxValue[] = [];
  readonly #outputs: GraphOutput[] = [];
  readonly #sharedValues = new Map<string, Value>();
  readonly #choices = new Map<Value, () => Value>();

  /** `weightsName` is how the graph's file refers to `weights`: a path relative to itself. */
  constructor(weights: ExternalData, weightsName: string) {
    this.#weights = weights;
    this.#weightsName = weightsName;
  }

  /** Declares an input of the graph. String dimensions are dynamic. */
  input(name: string, type: DataType, dims: ReadonlyArray<number | string>): Value {
    this.#inputs.push({ name, type, dims });
    return name;
  }

  /** Declares `value`, which a node computes, as the graph's output `name`. */
  output(name: string, value: Value, type: DataType, dims: ReadonlyArray<number | string>): void {
    this.#outputs.push({ name, value, type, dims });
  }

  /** Declares `value`, a sequence of int64 tensors of one dimension, as the graph's output `name`. */
  sequenceOutput(name: string, value: Value): void {
    this.#outputs.push({ name, value, type: 'int64', dims: ['N'], sequence: true });
  }

  /** Adds a node with one output. */
  node(operator: string, inputs: readonly Value[], attributes: Attributes = {}): Value {
    const [output] = this.nodes(operator, inputs, 1, attributes);
    return output!;
  }

  /** Adds a node with several outputs: the first ones, or those whose places are given where others are optional. */
  nodes(
    operator: string,
    inputs: readonly Value[],
    outputs: number | readonly number[],
    attributes: Attributes = {},
  ): Value[] {
    const dot = operator.lastIndexOf('.');
    const name = `${operator.slice(dot + 1)}_${this.#nodeCount++}`;
    const places = typeof outputs === 'number' ? [...new Array(outputs).keys()] : outputs;
    const values = places.map((place) => `${name}:${place}`);
    const slots = new Array<Value>(Math.max(...places) + 1).fill(absent);
    for (const [index, place] of places.entries()) slots[place] = values[index]!;
    this.#nodes.push({
      name,
      domain: operator.slice(0, Math.max(dot, 0)),
      operator: operator.slice(dot + 1),
      inputs,
      outputs: slots,
      attributes,
    });
    return values;
  }

  /** The same numbers in another type; of `bool`, whether they are not 0. */
  cast(value: Value, type: DataType): Value {
    return this.node('Cast', [value], { to: int(dataTypes[type]) });
  }

  /**
   * Computes one of two lists of values, of which only the one that is chosen costs anything. Both may use whatever was
   * computed before, and must have as many values.
   * @param condition bool [1]
   */
  choose(condition: Value, whenTrue: () => readonly Value[], whenFalse: () => readonly Value[]): Value[] {
    const branch = (build: () => readonly Value[]) => {
      const outer = this.#nodes;
      this.#nodes = [];
      const outputs = build();
      const nodes = this.#nodes;
      this.#nodes = outer;
      return { kind: 'graph', nodes, outputs } as const;
    };
    const [yes, no] = [branch(whenTrue), branch(whenFalse)];
    return this.nodes('If', [condition], yes.outputs.length, { then_branch: yes, else_branch: no });
  }

  /** One of several values: which, is asked for when the graph is encoded. What only the others need is left out then. */
  chooseLater(choice: () => Value): Value {
    const value = `choice_${this.#choices.size}`;
    this.#choices.set(value, choice);
    return value;
  }

  /** A value that several parts of the graph want: `build` adds it for the first, the others share it. */
  shared(key: string, build: () => Value): Value {
    let value = this.#sharedValues.get(key);
    if (value === undefined) {
      value = build();
      this.#sharedValues.set(key, value);
    }
    return value;
  }

  /** A small int64 tensor: a shape, axes, indices. Equal ones are stored once. */
  shape(...values: readonly number[]): Value {
    const key = `shape_${values.join('_')}`;
    return this.#constant(key, [values.length], BigInt64Array.from(values, BigInt));
  }

  /** A small int64 scalar. Equal ones are stored once. */
  integer(value: number): Value {
    return this.#constant(`integer_${value}`, [], BigInt64Array.of(BigInt(value)));
  }

  /** A float32 scalar. Equal ones are stored once. */
  scalar(value: number): Value {
    return this.#constant(`scalar_${value}`, [], Float32Array.of(value));
  }

  /** A float32 vector. Equal ones are stored once. */
  scalars(...values: readonly number[]): Value {
    return this.#constant(`scalars_${values.join('_')}`, [values.length], Float32Array.from(values));
  }

  /** An int8 scalar. Equal ones are stored once. */
  signedByteScalar(value: number): Value {
    return this.#constant(`signed_byte_scalar_${value}`, [], Int8Array.of(value));
  }

  /** A uint8 scalar. Equal ones are stored once. */
  byteScalar(value: number): Value {
    return this.#constant(`byte_scalar_${value}`, [], Uint8Array.of(value));
  }

  /** A uint8 vector of one element. Equal ones are stored once. */
  byte(value: number): Value {
    return this.#constant(`byte_${value}`, [1], Uint8Array.of(value));
  }

  /** Stores a weight under a name of its own. The type follows from `data`. */
  async weight(name: string, dims: readonly number[], data: TensorData): Promise<Value> {
    const size = dims.reduce((product, dim) => product * dim, 1);
    if (size !== data.length) {
      throw new Error(`Weight ${name} has ${data.length} elements for the shape [${dims}]. This is a bug.`);
    }
    const bytes = bytesOf(data);
    this.#initializers.push({
      name,
      type: typeOf(data),
      dims,
      data:
        bytes.length <= inlineBytes
          ? bytes
          : { location: this.#weightsName, ...(await this.#weights.append(bytes)) },
    });
    return name;
  }

  /** A float32 weight in the graph's own file whose numbers are asked for when the graph is encoded. */
  later(name: string, dims: readonly number[], data: () => Float32Array): Value {
    this.#initializers.push({
      name,
      type: 'float32',
      dims,
      get data() {
        return bytesOf(data());
      },
    });
    return name;
  }

  /** A weight that several parts of the graph want: `make` is called for the first, the others share it. */
  async sharedWeight(name: string, dims: readonly number[], make: () => TensorData): Promise<Value> {
    if (!this.#sharedValues.has(name)) this.#sharedValues.set(name, await this.weight(name, dims, make()));
    return name;
  }

  /**
   * The graph's file, with other outputs than those declared where `outputs` says so. Nodes and weights that contribute
   * to no output are left out of it.
   */
  encode(outputs: readonly GraphOutput[] = this.#outputs): Uint8Array {
    const chosen = (value: Value): Value => {
      const choice = this.#choices.get(value);
      return choice ? chosen(choice()) : value;
    };
    const names = new Map(outputs.map(({ name, value }) => [chosen(value), name]));
    const used = new Set(names.keys());
    const nodes: OnnxNode[] = [];
    for (const node of this.#nodes.toReversed()) {
      if (!node.outputs.some((value) => used.has(value))) continue;
      for (const input of inputsOf(node)) used.add(chosen(input));
      nodes.push(node);
    }
    const nameOf = (value: Value) => names.get(chosen(value)) ?? chosen(value);
    return encodeModel({
      nodes: nodes.reverse().map((node) => renamed(node, nameOf)),
      initializers: this.#initializers.filter(({ name }) => used.has(name)),
      inputs: this.#inputs,
      outputs,
    });
  }

  #constant(name: string, dims: readonly number[], data: TensorData): Value {
    return this.shared(name, () => {
      this.#initializers.push({ name, type: typeOf(data), dims, data: bytesOf(data) });
      return name;
    });
  }
}

/** What a node needs, its branches' needs included. */
function inputsOf({ inputs, attributes }: OnnxNode): Value[] {
  const branches = Object.values(attributes).flatMap((attribute) =>
    attribute.kind === 'graph' ? attribute.nodes.flatMap(inputsOf) : [],
  );
  return [...inputs, ...branches];
}

function renamed(node: OnnxNode, nameOf: (value: Value) => string): OnnxNode {
  const attributes = Object.entries(node.attributes).map(([key, attribute]) => [
    key,
    attribute.kind === 'graph'
      ? { ...attribute, nodes: attribute.nodes.map((inner) => renamed(inner, nameOf)) }
      : attribute,
  ]);
  return {
    ...node,
    inputs: node.inputs.map(nameOf),
    outputs: node.outputs.map(nameOf),
    attributes: Object.fromEntries(attributes),
  };
}

function bytesOf(data: TensorData): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

function typeOf(data: TensorData): DataType {
  if (data instanceof Float32Array) return 'float32';
  if (data instanceof Int8Array) return 'int8';
  if (data instanceof Uint8Array) return 'uint8';
  return 'int64';
}
