import { readFile } from 'node:fs/promises';
import protobuf from 'protobufjs/minimal.js';
import { CheckpointError } from './checkpoint.js';

/** A graph's input or output: an element type of `TensorProto.DataType`, and dimensions, undefined where dynamic. */
export interface GraphValue {
  readonly name: string;
  readonly type: number;
  readonly dims: ReadonlyArray<number | undefined>;
}

/** What an ONNX file says of itself from outside. */
export interface GraphSignature {
  /** Without those that have a value in the file. */
  readonly inputs: readonly GraphValue[];
  readonly outputs: readonly GraphValue[];
  /** Names of the files beside it that hold its weights. */
  readonly dataFiles: readonly string[];
}

/**
 * Reads the signature of an ONNX file: a `ModelProto` of https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
 * @throws CheckpointError when the file cannot be read, or is not such a message
 */
export async function readGraphSignature(path: string): Promise<GraphSignature> {
  let graph: Fields | undefined;
  try {
    graph = fieldsOf(await readFile(path)).messages(7)[0];
    if (graph !== undefined) return signatureOf(graph);
  } catch (error) {
    throw new CheckpointError(`${path}: not an ONNX file, or broken: ${(error as Error).message}`, {
      cause: error,
    });
  }
  throw new CheckpointError(`${path}: not an ONNX file: it holds no graph`);
}

function signatureOf(graph: Fields): GraphSignature {
  const initializers = graph.messages(5);
  const constants = new Set(initializers.map((tensor) => tensor.text(8)));
  const locations = initializers
    .flatMap((tensor) => tensor.messages(13))
    .filter((entry) => entry.text(1) === 'location')
    .map((entry) => entry.text(2));
  return {
    inputs: graph
      .messages(11)
      .map(readValue)
      .filter(({ name }) => !constants.has(name)),
    outputs: graph.messages(12).map(readValue),
    dataFiles: [...new Set(locations)],
  };
}

function readValue(value: Fields): GraphValue {
  const tensor = value.messages(2)[0]?.messages(1)[0];
  const dims = tensor?.messages(2)[0]?.messages(1) ?? [];
  return {
    name: value.text(1),
    type: tensor?.integer(1) ?? 0,
    dims: dims.map((dimension) => dimension.integer(1)),
  };
}

/** The fields of a protobuf message by their numbers. */
class Fields {
  readonly #values: ReadonlyMap<number, readonly (number | Uint8Array)[]>;

  constructor(values: ReadonlyMap<number, readonly (number | Uint8Array)[]>) {
    this.#values = values;
  }

  messages(field: number): Fields[] {
    return this.#all(field).map((value) => fieldsOf(bytes(value)));
  }

  /** Empty when the field is not there. */
  text(field: number): string {
    return new TextDecoder().decode(bytes(this.#all(field).at(-1) ?? new Uint8Array()));
  }

  integer(field: number): number | undefined {
    const value = this.#all(field).at(-1);
    return typeof value === 'number' ? value : undefined;
  }

  #all(field: number): readonly (number | Uint8Array)[] {
    return this.#values.get(field) ?? [];
  }
}

function bytes(value: number | Uint8Array): Uint8Array {
  if (typeof value === 'number') throw new Error('a number stands where a message should');
  return value;
}

/** Wire types of protobuf's encoding. */
const varint = 0;
const delimited = 2;

/** The parts of a message; those that it contains stay where they are. */
function fieldsOf(message: Uint8Array): Fields {
  const values = new Map<number, (number | Uint8Array)[]>();
  const reader = protobuf.Reader.create(message);
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    const [field, wireType] = [tag >>> 3, tag & 7];
    if (wireType !== varint && wireType !== delimited) {
      reader.skipType(wireType);
      continue;
    }
    const value = wireType === varint ? Number(String(reader.int64())) : reader.bytes();
    const known = values.get(field);
    if (known) known.push(value);
    else values.set(field, [value]);
  }
  return new Fields(values);
}
