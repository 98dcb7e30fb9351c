import protobuf from 'protobufjs/minimal.js';

/** Element types of ONNX tensors, numbered as `TensorProto.DataType` numbers them. */
export const dataTypes = { float32: 1, uint8: 2, int8: 3, int32: 6, int64: 7, bool: 9 } as const;
export type DataType = keyof typeof dataTypes;

/** What stands in `AttributeProto`: integers and floats must be told apart, which a JavaScript number cannot do. */
export type Attribute =
  | { readonly kind: 'int'; readonly value: number }
  | { readonly kind: 'float'; readonly value: number }
  | { readonly kind: 'ints'; readonly value: readonly number[] }
  | { readonly kind: 'string'; readonly value: string }
  /** A branch of an `If`: nodes, which see all values around them, and which of their values it gives. */
  | { readonly kind: 'graph'; readonly nodes: readonly OnnxNode[]; readonly outputs: readonly string[] };

export interface OnnxNode {
  readonly name: string;
  /** Empty for the standard operators. */
  readonly domain: string;
  readonly operator: string;
  /** Value names; an empty one leaves out an optional input. */
  readonly inputs: readonly string[];
  /** Value names; an empty one leaves out an optional output. */
  readonly outputs: readonly string[];
  readonly attributes: Readonly<Record<string, Attribute>>;
}

export interface OnnxInitializer {
  readonly name: string;
  readonly type: DataType;
  readonly dims: readonly number[];
  /** The little-endian bytes themselves, or where they are in the external data file. */
  readonly data: Uint8Array | { readonly location: string; readonly offset: number; readonly length: number };
}

/** A graph's input or output. A string dimension is symbolic. */
export interface OnnxValue {
  readonly name: string;
  readonly type: DataType;
  readonly dims: ReadonlyArray<number | string>;
  /** Whether it is a sequence of such tensors; it is one of them when left out. */
  readonly sequence?: boolean;
}

export interface OnnxModel {
  readonly nodes: readonly OnnxNode[];
  readonly initializers: readonly OnnxInitializer[];
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
}

/** Version of the file format, and of the operator sets that graphs are written against. */
const irVersion = 11;
const operatorSets = [
  { domain: '', version: 24 },
  { domain: 'com.microsoft', version: 1 },
];

/** `TensorProto.DataLocation`. */
const external = 1;
/** `AttributeProto.AttributeType`. */
const attributeTypes = { float: 1, int: 2, string: 3, graph: 5, ints: 7 } as const;

/** The protobuf encoding of a model: a `ModelProto` of https://github.com/onnx/onnx/blob/main/onnx/onnx.proto. */
export function encodeModel(model: OnnxModel): Uint8Array {
  const out = new Message();
  out.integer(1, irVersion);
  out.string(2, 'headrace');
  out.message(7, (graph) => {
    for (const node of model.nodes) graph.message(1, (field) => writeNode(field, node));
    graph.string(2, 'main');
    for (const tensor of model.initializers) graph.message(5, (field) => writeTensor(field, tensor));
    for (const value of model.inputs) graph.message(11, (field) => writeValue(field, value));
    for (const value of model.outputs) graph.message(12, (field) => writeValue(field, value));
  });
  for (const { domain, version } of operatorSets) {
    out.message(8, (set) => {
      set.string(1, domain);
      set.integer(2, version);
    });
  }
  return out.finish();
}

function writeNode(out: Message, node: OnnxNode): void {
  for (const input of node.inputs) out.string(1, input);
  for (const output of node.outputs) out.string(2, output);
  out.string(3, node.name);
  out.string(4, node.operator);
  for (const [name, attribute] of Object.entries(node.attributes)) {
    out.message(5, (field) => writeAttribute(field, name, attribute));
  }
  out.string(7, node.domain);
}

function writeAttribute(out: Message, name: string, attribute: Attribute): void {
  out.string(1, name);
  switch (attribute.kind) {
    case 'float':
      out.float(2, attribute.value);
      break;
    case 'int':
      out.integer(3, attribute.value);
      break;
    case 'ints':
      for (const value of attribute.value) out.integer(8, value);
      break;
    case 'string':
      out.string(4, attribute.value);
      break;
    case 'graph':
      out.message(6, (graph) => {
        for (const node of attribute.nodes) graph.message(1, (field) => writeNode(field, node));
        graph.string(2, name);
        for (const output of attribute.outputs) graph.message(12, (value) => value.string(1, output));
      });
      break;
    default:
      attribute satisfies never;
  }
  out.integer(20, attributeTypes[attribute.kind]);
}

function writeTensor(out: Message, tensor: OnnxInitializer): void {
  for (const dim of tensor.dims) out.integer(1, dim);
  out.integer(2, dataTypes[tensor.type]);
  out.string(8, tensor.name);
  const { data } = tensor;
  if (data instanceof Uint8Array) {
    out.bytes(9, data);
    return;
  }
  for (const [key, value] of Object.entries(data)) {
    out.message(13, (entry) => {
      entry.string(1, key);
      entry.string(2, String(value));
    });
  }
  out.integer(14, external);
}

function writeValue(out: Message, value: OnnxValue): void {
  out.string(1, value.name);
  out.message(2, (type) => {
    if (value.sequence) type.message(4, (of) => of.message(1, (element) => writeTensorType(element, value)));
    else writeTensorType(type, value);
  });
}

function writeTensorType(out: Message, { type, dims }: OnnxValue): void {
  out.message(1, (tensor) => {
    tensor.integer(1, dataTypes[type]);
    tensor.message(2, (shape) => {
      for (const dim of dims) {
        shape.message(1, (field) => {
          if (typeof dim === 'number') field.integer(1, dim);
          else field.string(2, dim);
        });
      }
    });
  });
}

/** Wire types of protobuf's encoding. */
const varint = 0;
const delimited = 2;
const fixed32 = 5;

/** A protobuf message under construction: fields by number. */
class Message {
  readonly #writer: protobuf.Writer;

  constructor(writer: protobuf.Writer = protobuf.Writer.create()) {
    this.#writer = writer;
  }

  integer(field: number, value: number): void {
    this.#tag(field, varint).int64(value);
  }

  float(field: number, value: number): void {
    this.#tag(field, fixed32).float(value);
  }

  string(field: number, value: string): void {
    this.#tag(field, delimited).string(value);
  }

  bytes(field: number, value: Uint8Array): void {
    this.#tag(field, delimited).bytes(value);
  }

  message(field: number, write: (message: Message) => void): void {
    this.#tag(field, delimited).fork();
    write(this);
    this.#writer.ldelim();
  }

  finish(): Uint8Array {
    return this.#writer.finish();
  }

  #tag(field: number, wireType: number): protobuf.Writer {
    return this.#writer.uint32((field << 3) | wireType);
  }
}
