/** Parts of a layer's tensor names, Hugging Face's to GGUF's. */
const layerParts: Readonly<Record<string, string>> = {
  input_layernorm: 'attn_norm',
  'self_attn.q_proj': 'attn_q',
  'self_attn.k_proj': 'attn_k',
  'self_attn.v_proj': 'attn_v',
  'self_attn.o_proj': 'attn_output',
  'self_attn.q_norm': 'attn_q_norm',
  'self_attn.k_norm': 'attn_k_norm',
  post_attention_layernorm: 'ffn_norm',
  'mlp.gate_proj': 'ffn_gate',
  'mlp.up_proj': 'ffn_up',
  'mlp.down_proj': 'ffn_down',
};

const outerNames: Readonly<Record<string, string>> = {
  'model.embed_tokens.weight': 'token_embd.weight',
  'model.norm.weight': 'output_norm.weight',
  'lm_head.weight': 'output.weight',
};

/** The name that a GGUF file gives to a tensor of the llama family; undefined for a name it has none for. */
export function ggufTensorName(name: string): string | undefined {
  const match = /^model\.layers\.(\d+)\.(.+)\.(weight|bias)$/.exec(name);
  if (!match) {
    return Object.hasOwn(outerNames, name) ? outerNames[name] : undefined;
  }
  const [, layer, part, kind] = match;
  return Object.hasOwn(layerParts, part!) ? `blk.${layer}.${layerParts[part!]}.${kind}` : undefined;
}
