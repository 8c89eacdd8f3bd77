# SPDX-License-Identifier: GPL-3.0-or-later
"""Tiny random models in the layout in which Hugging Face publishes them, and what they compute.

    python3 tests/support/published/published_models.py write DIR TYPE…      (no TYPE: all in floats but some; they are printed)
    python3 tests/support/published/published_models.py compare LIST         logits of runs: a line "RUN DIR" for each, with a tab
    python3 tests/support/published/published_models.py same DIR DIR         names, types, shapes and bytes
    python3 tests/support/published/published_models.py made DIR N SOURCE…   the N bytes that an encoder-decoder makes of each source
    python3 tests/support/published/published_models.py aligned DIR METRICS…  first steps of runs: losses of texts at unknown places
    python3 tests/support/published/published_models.py behind LIST          runs that generated: a line "RUN PROMPT float|int8
                                                                             DIR" for each, with tabs; DIR's model, or DIR WEIGHTS

writes DIR/TYPE/config.json, model.safetensors (or two shards with an index), in-*.npy (a window of
tokens and one token more, or a picture and its class; or in-text.tsv, a class and a text) and logits.npy (of every position). The models are written here
from their papers and the names of their tensors, in plain PyTorch and float64; nothing is shared with
the program under test.
"""
import glob
import json
import math
import os
import struct
import sys

import numpy

if sys.argv[1] in ("write", "behind", "made", "aligned"):
    import torch

    torch.set_default_dtype(torch.float64)
LENGTH = 12
PROMPT = LENGTH  # tokens that are read at once; others follow one by one
SHARDED = {"qwen2", "mixtral", "deepseek_v3-fp8"}
ADJACENT = {"llama4_text", "gptj", "codegen", "glm", "glm4", "cohere", "cohere2", "deepseek_v2", "deepseek_v3", "kimi_k2", "glm4_moe_lite", "mistral4", "ernie4_5", "ernie4_5_moe", "helium"}  # types whose rotary pairs lie side by side


def e4m3(code):
    """What eight bits say: a sign, four bits of the exponent, three of the fraction, no infinities."""
    exponent, fraction = code >> 3 & 15, code & 7
    size = (8 + fraction) * 2.0 ** (exponent - 10) if exponent else fraction * 2.0 ** -9
    return math.nan if code & 127 == 127 else -size if code & 128 else size


def in_blocks(value, rows, columns):
    """A matrix as codes of E4M3 and a float32 scale for each block of so many rows and columns, the last cut off."""
    table = torch.tensor([e4m3(code) for code in range(256)]).nan_to_num(math.inf)
    down, across = -(-value.shape[0] // rows), -(-value.shape[1] // columns)
    scales = torch.zeros(down, across, dtype=torch.float32)
    codes, said = torch.zeros(value.shape, dtype=torch.uint8), torch.zeros(value.shape)
    for i in range(down):
        for j in range(across):
            block = (slice(i * rows, (i + 1) * rows), slice(j * columns, (j + 1) * columns))
            scales[i, j] = float(value[block].abs().max()) / 448
            scale = float(scales[i, j])
            codes[block] = (value[block].double()[..., None] / scale - table).abs().argmin(-1).to(torch.uint8)
            said[block] = table[codes[block].long()] * scale
    return codes, scales, said.to(torch.float32)


def in_words(numbers, order):
    """Numbers of four bits, eight a word along the last axis, the one for bits 4 k … of each eight by `order`; of eight likewise."""
    n = len(order)
    words = torch.zeros(*numbers.shape[:-1], numbers.shape[-1] // n, dtype=torch.int64)
    for k, place in enumerate(order):
        words |= numbers[..., place::n].long() << 32 // n * k
    return torch.where(words >= 2 ** 31, words - 2 ** 32, words).to(torch.int32)


def in_four_bits(value, config, generator):
    """A matrix as GPTQ, in four bits or eight, and AWQ keep it, by the ending of its tensors' names, and the numbers that these say."""
    awq, (out, inputs) = config["quant_method"] == "awq", value.shape
    size = config["group_size"] if config["group_size"] > 0 else inputs
    in_order, most = range(32 // config["bits"]), 2 ** config["bits"]
    groups, order = -(-inputs // size), (0, 2, 4, 6, 1, 3, 5, 7) if awq else in_order
    group = torch.arange(inputs) // size
    if config.get("desc_act"):
        group = group[torch.randperm(inputs, generator=generator)]
    scales = ((torch.rand(groups, out, generator=generator) + 0.5) / (most / 4 * math.sqrt(inputs))).to(torch.float16)
    zeros = torch.randint(most, (groups, out), generator=generator)
    numbers = torch.randint(most, (inputs, out), generator=generator)
    said = (numbers - zeros[group]) * scales[group].to(torch.float64)
    less = 0 if awq or config.get("checkpoint_format") == "gptq_v2" else 1
    tensors = {"scales": scales, "qzeros": in_words((zeros - less) % most, order),
               "qweight": in_words(numbers, order) if awq else in_words(numbers.T, in_order).T.contiguous()}
    if not awq:
        tensors["g_idx"] = group.to(torch.int32)
    return tensors, said.T.to(torch.float32)


def in_mxfp4(value):
    """Experts' [experts, in, out] as MXFP4 keeps them, by the ending of its tensors' names, and the numbers that these say."""
    sizes = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    table = torch.cat([sizes, -sizes]).to(torch.float64)
    blocks = value.transpose(1, 2).reshape(value.shape[0], value.shape[2], -1, 32).to(torch.float64)
    power = torch.floor(torch.log2(blocks.abs().amax(-1, keepdim=True))) - 2
    numbers = (blocks[..., None] / 2 ** power[..., None] - table).abs().argmin(-1)
    said = (table[numbers] * 2 ** power).reshape(value.shape[0], value.shape[2], -1).transpose(1, 2).contiguous()
    packed = numbers[..., 0::2] | numbers[..., 1::2] << 4
    signed = [torch.where(part > 127, part - 256, part).to(torch.int8) for part in (packed, power[..., 0].long() + 127)]
    return dict(zip(("_blocks", "_scales"), signed)), said.to(torch.float32)


class Weights:
    """Tensors by name, drawn when they are first asked for, kept as float32 in the file, or as a quantization_config says."""

    def __init__(self, quantization=None, old_names=False):
        self.tensors, self.codes, self.packed = {}, {}, {}
        self.quantization, self.old_names = quantization, old_names
        self.generator = torch.Generator().manual_seed(7)

    def round(self, name, value):
        """The values that a matrix of a layer has in the file."""
        if self.quantization is not None and self.quantization["quant_method"] == "mxfp4" and value.dim() == 3:
            self.packed[name], said = in_mxfp4(value)
            return said
        if self.quantization is None or "_proj" not in name or value.dim() != 2 or self.quantization["quant_method"] == "mxfp4":
            return value
        if self.quantization.get("format") == "int-quantized":
            scales = (value.abs().amax(1, keepdim=True) / 127).to(torch.float32)
            codes = torch.round(value / scales).to(torch.int16)
            self.codes[name] = codes, name + "_scale", scales
            return codes * scales
        if "bits" in self.quantization:
            self.packed[name], said = in_four_bits(value, self.quantization, self.generator)
            return said
        blocks = self.quantization.get("weight_block_size")
        codes, scales, said = in_blocks(value, *(blocks or (1, value.shape[1])))
        self.codes[name] = codes, name + ("_scale_inv" if blocks else "_scale"), scales
        return said

    def name(self, name):
        """BERT's first files call the weights of norms as TensorFlow did."""
        if not self.old_names or "LayerNorm" not in name:
            return name
        return name.replace(".weight", ".gamma").replace(".bias", ".beta")

    def published(self):
        """What the file has: values, or codes and their scales."""
        tensors = {self.name(name): value for name, value in self.tensors.items()}
        for name, (codes, beside, scales) in self.codes.items():
            tensors[name], tensors[beside] = codes, scales
        for name, parts in self.packed.items():
            del tensors[name]
            tensors.update({name.removesuffix("weight") + ending: part for ending, part in parts.items()})
        return tensors

    def __call__(self, name, *shape, scale=None, about=0.0):
        if name not in self.tensors:
            scale = 1 / math.sqrt(shape[-1]) if scale is None else scale
            value = torch.randn(shape, generator=self.generator) * scale + about
            self.tensors[name] = self.round(name, value.to(torch.float32))
        assert tuple(self.tensors[name].shape) == shape, name
        return self.tensors[name].to(torch.float64)


def write_safetensors(path, tensors):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, value in tensors.items():
        dtype, kind = {torch.uint8: ("F8_E4M3", "u1"), torch.int32: ("I32", "<i4"),
                       torch.float16: ("F16", "<f2"), torch.int8: ("U8", "i1"), torch.int16: ("I8", "i1")}.get(value.dtype, ("F32", "<f4"))
        raw = value.numpy().astype(kind).tobytes()
        header[name] = {"dtype": dtype, "shape": list(value.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def write_model(folder, tensors, sharded):
    if not sharded:
        write_safetensors(os.path.join(folder, "model.safetensors"), tensors)
        return
    names = list(tensors)
    shards = [names[::2], names[1::2]]
    index = {"metadata": {"total_size": sum(4 * t.numel() for t in tensors.values())},
             "weight_map": {}}
    for i, shard in enumerate(shards):
        file = f"model-{i + 1:05}-of-00002.safetensors"
        write_safetensors(os.path.join(folder, file), {n: tensors[n] for n in shard})
        index["weight_map"].update({n: file for n in shard})
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as file:
        json.dump(index, file)


# ---- Parts -----------------------------------------------------------------------------------

def layer_norm(x, w, b, epsilon):
    mean = x.mean(-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + epsilon) * w + b


def rms_norm(x, w, epsilon):
    return x / torch.sqrt((x ** 2).mean(-1, keepdim=True) + epsilon) * w


def rms_norms(w, epsilon):
    """Norms by their names in the file, with scales around 1."""
    return lambda name, x: rms_norm(x, w(name + ".weight", x.shape[-1], scale=0.2, about=1), epsilon)


def layer_norms(w, epsilon, biased=True):
    """Likewise."""
    return lambda name, x: layer_norm(x, w(name + ".weight", x.shape[-1], scale=0.2, about=1),
                                      w(name + ".bias", x.shape[-1], scale=0.2) if biased else 0, epsilon)


def gelu_tanh(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def gelu(x):
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


def silu(x):
    return x / (1 + torch.exp(-x))


def grown_with_the_text(config, base, width, factor, length):
    """By position: transformers turns each token with the base of the text as long as it was when that
    token came, so the prompt's tokens with the prompt's, and leaves what its cache holds."""
    context, rows = config["max_position_embeddings"], []
    for position in range(length):
        reached = max(PROMPT, position + 1, context)
        grown = base * (factor * reached / context - (factor - 1)) ** (width / (width - 2))
        rows.append([grown ** (-2 * i / width) for i in range(width // 2)])
    return torch.tensor(rows)


def frequencies(config, width, length):
    """Inverse wave lengths of the rotary pairs, stretched as in Llama 3.1 where the config says."""
    base = config.get("rope_theta", 1e6 if config["model_type"] == "mixtral" else 1e4)
    inverse = torch.tensor([base ** (-2 * i / width) for i in range(width // 2)])
    scaling = config.get("rope_scaling")
    if not scaling:
        return inverse
    kind = scaling.get("rope_type", scaling.get("type"))
    if kind in ("default", "mrope"):
        return inverse
    if kind == "linear":
        return inverse / scaling["factor"]
    if kind == "dynamic":
        return grown_with_the_text(config, base, width, scaling["factor"], length)
    if kind == "longrope":
        return longrope(inverse, config, length)
    if kind == "yarn":
        return yarn(inverse, base, width, scaling)
    old = scaling["original_max_position_embeddings"]
    low, high = old / scaling["low_freq_factor"], old / scaling["high_freq_factor"]
    out = []
    for f in inverse.tolist():
        wave = 2 * math.pi / f
        if wave < high:
            out.append(f)
        elif wave > low:
            out.append(f / scaling["factor"])
        else:
            smooth = (old / wave - scaling["low_freq_factor"]) / (
                scaling["high_freq_factor"] - scaling["low_freq_factor"])
            out.append((1 - smooth) * f / scaling["factor"] + smooth * f)
    return torch.tensor(out)


def longrope(inverse, config, length):
    """By position, of the text as long as it was when that token came (see above)."""
    scaling, rows = config["rope_scaling"], []
    for position in range(length):
        long = max(PROMPT, position + 1) > config["original_max_position_embeddings"]
        rows.append(inverse / torch.tensor(scaling["long_factor" if long else "short_factor"]))
    return torch.stack(rows)


def longrope_gain(config):
    old = config["original_max_position_embeddings"]
    return math.sqrt(1 + math.log(config["max_position_embeddings"] / old) / math.log(old))


def yarn(inverse, base, width, scaling):
    """As _compute_yarn_parameters of transformers' modeling_rope_utils.py, without its gain."""
    def pair(turns):
        return width * math.log(scaling["original_max_position_embeddings"] / (turns * 2 * math.pi)) / (
            2 * math.log(base))
    low, high = pair(scaling.get("beta_fast", 32)), pair(scaling.get("beta_slow", 1))
    if scaling.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, width - 1)
    ramp = ((torch.arange(width // 2, dtype=torch.float64) - low) / max(high - low, 0.001)).clamp(0, 1)
    return inverse / scaling["factor"] * ramp + inverse * (1 - ramp)


def rotate(x, config):
    """x[heads, length, width]: the first features turn, halves are pairs."""
    width = int(x.shape[-1] * config.get("partial_rotary_factor", 1.0))
    angle = torch.arange(x.shape[1], dtype=torch.float64)[:, None] * frequencies(
        config, width, x.shape[1])
    scaling = config.get("rope_scaling") or {}
    gain = 0.1 * math.log(scaling["factor"]) + 1 if scaling.get("rope_type") == "yarn" else 1
    if scaling.get("type") == "longrope":
        gain = longrope_gain(config)
    cos, sin = gain * torch.cos(angle), gain * torch.sin(angle)
    if config["model_type"] in ADJACENT:
        a, b, rest = x[..., 0:width:2], x[..., 1:width:2], x[..., width:]
        return torch.cat([torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2), rest], -1)
    a, b, rest = x[..., :width // 2], x[..., width // 2:width], x[..., width:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin, rest], -1)


def attend(q, k, v, scale, causal=True, window=None, cap=None, bias=None, sinks=None):
    """q[heads, length, width] against k, v of fewer heads, each shared by consecutive ones; sinks[heads] are scores of nothing."""
    share = q.shape[0] // k.shape[0]
    k, v = k.repeat_interleave(share, 0), v.repeat_interleave(share, 0)
    scores = q @ k.transpose(1, 2) * scale
    if cap:
        scores = cap * torch.tanh(scores / cap)
    if bias is not None:
        scores = scores + bias
    i, j = torch.arange(q.shape[1])[:, None], torch.arange(k.shape[1])[None, :]
    hidden = torch.zeros(q.shape[1], k.shape[1], dtype=torch.bool)
    if causal:
        hidden = hidden | (j > i)
    if window:
        hidden = hidden | (i - j >= window)
    scores = scores.masked_fill(hidden, -math.inf)
    if sinks is not None:
        scores = torch.cat([scores, sinks[:, None, None].expand(-1, scores.shape[1], 1)], -1)
    return torch.softmax(scores, -1)[..., :k.shape[1]] @ v


def heads_of(x, heads):
    return x.view(x.shape[0], heads, -1).transpose(0, 1)


def joined(x):
    return x.transpose(0, 1).reshape(x.shape[1], -1)


# ---- Models ----------------------------------------------------------------------------------

def linear(w, name, x, out, bias=False):
    y = x @ w(name + ".weight", out, x.shape[-1]).T
    return y + w(name + ".bias", out, scale=0.3) if bias else y


def gpt2(w, c, tokens):
    h, n = c["n_embd"], c["n_head"]

    def conv1d(name, x, out):
        return x @ w(name + ".weight", x.shape[-1], out, scale=1 / math.sqrt(x.shape[-1])) + w(
            name + ".bias", out, scale=0.3)

    def norm(name, x):
        return layer_norm(x, w(name + ".weight", h, scale=0.2, about=1),
                          w(name + ".bias", h, scale=0.2), c["layer_norm_epsilon"])

    first = c["model_type"] == "openai-gpt"  # norms stand behind both parts
    names = ("tokens_embed", "positions_embed") if first else ("wte", "wpe")
    inner = 4 * h if first else c["n_inner"]
    table = w(f"transformer.{names[0]}.weight", c["vocab_size"], h, scale=0.5)
    x = table[tokens] + w(f"transformer.{names[1]}.weight", c["n_positions"], h, scale=0.3)[:len(tokens)]
    for i in range(c["n_layer"]):
        p = f"transformer.h.{i}."
        q, k, v = conv1d(p + "attn.c_attn", x if first else norm(p + "ln_1", x), 3 * h).split(h, 1)
        parts = i + 1 if c.get("scale_attn_by_inverse_layer_idx") else 1
        y = attend(heads_of(q, n), heads_of(k, n), heads_of(v, n), 1 / math.sqrt(h // n) / parts)
        x = x + conv1d(p + "attn.c_proj", joined(y), h)
        if first:
            x = norm(p + "ln_1", x)
        y = gelu_tanh(conv1d(p + "mlp.c_fc", x if first else norm(p + "ln_2", x), inner))
        x = x + conv1d(p + "mlp.c_proj", y, h)
        if first:
            x = norm(p + "ln_2", x)
    return (x if first else norm("transformer.ln_f", x)) @ table.T


def experts(w, c, p, x, names):
    """The k best of all experts, in their shares of the softmax."""
    router, gate, up, down, count, k, width, renormalise = names
    shares = torch.softmax(linear(w, p + router, x, count), -1)
    best, which = torch.topk(shares, k, -1)
    if renormalise:
        best = best / best.sum(-1, keepdim=True)
    y = torch.zeros_like(x)
    for e in range(count):
        share = (best * (which == e)).sum(-1, keepdim=True)
        hidden = silu(linear(w, p + gate.format(e), x, width)) * linear(w, p + up.format(e), x, width)
        y = y + share * linear(w, p + down.format(e), hidden, x.shape[-1])
    return y


def slides_at(c, layer):
    """Whether a layer has the window, where the config says so itself; else None."""
    if "layer_types" in c:
        return c["layer_types"][layer] == "sliding_attention"
    if "sliding_window_pattern" in c:
        return (layer + 1) % c["sliding_window_pattern"] != 0
    return None


def rotary_of(c, slides):
    """The config with the rotary positions of one of its layers."""
    parameters = c.get("rope_parameters", c)
    if "full_attention" in parameters:
        parameters = parameters["sliding_attention" if slides else "full_attention"]
    elif slides and "rope_local_base_freq" in c:
        return {**c, "rope_theta": c["rope_local_base_freq"], "rope_scaling": None}
    if parameters is c:
        return c
    return {**c, "rope_theta": parameters["rope_theta"], "rope_scaling": parameters if "factor" in parameters else None}


def llama_like(w, c, tokens):
    kind, h, f = c["model_type"], c["hidden_size"], c["intermediate_size"]
    heads, kv = c["num_attention_heads"], c["num_key_value_heads"]
    width = c.get("head_dim") or h // heads
    gemma = "gemma" in kind
    act = gelu_tanh if gemma else (lambda x: torch.relu(x) ** 2) if kind == "bitnet" else silu
    bias = c.get("attention_bias", False)
    qkv_bias = kind in ("qwen2", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text", "qwen2_moe", "glm", "glm4") or bias or c.get("use_qkv_bias", False)
    plain = kind in ("stablelm", "starcoder2")  # norms of means and variances
    if kind == "starcoder2":
        act, bias, qkv_bias = gelu_tanh, c["use_bias"], c["use_bias"]

    def norm(name, x):
        if kind == "olmo":
            return layer_norm(x, 1, 0, 1e-5)
        if plain:
            epsilon = c["layer_norm_eps" if kind == "stablelm" else "norm_epsilon"]
            return layer_norm(x, w(name + ".weight", h, scale=0.2, about=1), w(name + ".bias", h, scale=0.2), epsilon)
        scale = w(name + ".weight", x.shape[-1], scale=0.2, about=0 if gemma else 1)
        return rms_norm(x, scale + 1 if gemma else scale, c["rms_norm_eps"])

    def attention(i, p, x):
        if kind == "phi3":
            sizes = [heads * width, kv * width, kv * width]
            q, k, v = linear(w, p + "qkv_proj", x, sum(sizes)).split(sizes, 1)
        else:
            q = linear(w, p + "q_proj", x, heads * width, qkv_bias)
            k = linear(w, p + "k_proj", x, kv * width, qkv_bias)
            v = linear(w, p + "v_proj", x, kv * width, qkv_bias)
        if kind == "olmoe":
            q, k = norm(p + "q_norm", q), norm(p + "k_norm", k)
        elif c.get("clip_qkv"):
            q, k, v = (part.clamp(-c["clip_qkv"], c["clip_qkv"]) for part in (q, k, v))
        q, k, v = heads_of(q, heads), heads_of(k, kv), heads_of(v, kv)
        if c.get("qk_layernorm"):
            q, k = (torch.stack([layer_norm(head, w(f"{p}{name}_layernorm.norms.{j}.weight", width, scale=0.2, about=1), 0, 1e-5)
                                 for j, head in enumerate(x)]) for name, x in (("q", q), ("k", k)))
        if kind.startswith("qwen3") or kind == "gemma3_text":
            q, k = norm(p + "q_norm", q), norm(p + "k_norm", k)
        window = c.get("sliding_window")
        if kind == "gemma2" and i % 2 == 1:
            window = None
        if kind in ("qwen2", "qwen2_moe", "qwen3", "qwen3_moe") and not (
                c.get("use_sliding_window") and i >= c.get("max_window_layers", 0)):
            window = None
        slides = slides_at(c, i)
        if slides is not None:
            window = c.get("sliding_window") if slides else None
        scale = c.get("attention_multiplier", 1 / math.sqrt(c.get("query_pre_attn_scalar", width)))
        if c.get("no_rope_layers", [1] * (i + 1))[i] == 1:
            q, k = (rotate(x, rotary_of(c, slides)) for x in (q, k))
        y = attend(q, k, v, scale, window=window,
                   cap=c.get("attn_logit_softcapping"))
        made = norm(p + "attn_sub_norm", joined(y)) if kind == "bitnet" else joined(y)
        return linear(w, p + "o_proj", made, h, bias)

    def ffn(i, p, x):
        if kind == "mixtral":
            return experts(w, c, p + "block_sparse_moe.", x, (
                "gate", "experts.{}.w1", "experts.{}.w3", "experts.{}.w2", c["num_local_experts"],
                c["num_experts_per_tok"], f, True))
        if kind == "qwen3_vl_moe_text":
            n, wide = c["num_experts"], c["moe_intermediate_size"]
            gates, downs = w(p + "mlp.experts.gate_up_proj", n, h, 2 * wide, scale=0.3), w(p + "mlp.experts.down_proj", n, wide, h, scale=0.3)
            best, which = torch.topk(torch.softmax(linear(w, p + "mlp.gate", x, n), -1), c["num_experts_per_tok"], -1)
            best, y = best / best.sum(-1, keepdim=True), 0
            for e in range(n):
                gate, up = (x @ gates[e]).split(wide, -1)
                y = y + (best * (which == e)).sum(-1, keepdim=True) * ((silu(gate) * up) @ downs[e])
            return y
        if kind in ("qwen3_moe", "olmoe"):
            return experts(w, c, p + "mlp.", x, (
                "gate", "experts.{}.gate_proj", "experts.{}.up_proj", "experts.{}.down_proj",
                c["num_experts"], c["num_experts_per_tok"], c.get("moe_intermediate_size", f),
                c["norm_topk_prob"]))
        if kind == "qwen2_moe" and i not in c["mlp_only_layers"]:
            shared = p + "mlp.shared_expert."
            hidden = (silu(linear(w, shared + "gate_proj", x, c["shared_expert_intermediate_size"])) *
                      linear(w, shared + "up_proj", x, c["shared_expert_intermediate_size"]))
            share = 1 / (1 + torch.exp(-linear(w, p + "mlp.shared_expert_gate", x, 1)))
            return share * linear(w, shared + "down_proj", hidden, h) + experts(w, c, p + "mlp.", x, (
                "gate", "experts.{}.gate_proj", "experts.{}.up_proj", "experts.{}.down_proj", c["num_experts"],
                c["num_experts_per_tok"], c["moe_intermediate_size"], c["norm_topk_prob"]))
        if kind == "deepseek" and i >= c["first_k_dense_replace"]:
            shared, wide = p + "mlp.shared_experts.", c["n_shared_experts"] * c["moe_intermediate_size"]
            hidden = silu(linear(w, shared + "gate_proj", x, wide)) * linear(w, shared + "up_proj", x, wide)
            return linear(w, shared + "down_proj", hidden, h) + experts(w, c, p + "mlp.", x, (
                "gate", "experts.{}.gate_proj", "experts.{}.up_proj", "experts.{}.down_proj", c["n_routed_experts"],
                c["num_experts_per_tok"], c["moe_intermediate_size"], c["norm_topk_prob"]))
        mlp_bias = c.get("mlp_bias", False)
        if kind == "starcoder2":
            return linear(w, p + "mlp.c_proj", act(linear(w, p + "mlp.c_fc", x, f, bias)), h, bias)
        if kind in ("phi3", "glm", "glm4"):
            gate, up = linear(w, p + "mlp.gate_up_proj", x, 2 * f).split(f, 1)
        else:
            gate = linear(w, p + "mlp.gate_proj", x, f, mlp_bias)
            up = linear(w, p + "mlp.up_proj", x, f, mlp_bias)
        hidden = norm(p + "mlp.ffn_sub_norm", act(gate) * up) if kind == "bitnet" else act(gate) * up
        return linear(w, p + "mlp.down_proj", hidden, h, mlp_bias)

    table = w("model.embed_tokens.weight", c["vocab_size"], h, scale=0.5)
    x = table[tokens] * (math.sqrt(h) if gemma else c.get("embedding_multiplier", 1))
    branch = c.get("residual_multiplier", 1)
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        y = attention(i, p + "self_attn.", norm(p + "input_layernorm", x))
        if kind in ("gemma2", "gemma3_text"):
            x = x + norm(p + "post_attention_layernorm", y)
            y = ffn(i, p, norm(p + "pre_feedforward_layernorm", x))
            x = x + norm(p + "post_feedforward_layernorm", y)
        elif kind == "vaultgemma":
            x = x + y
            x = x + ffn(i, p, norm(p + "pre_feedforward_layernorm", x))
        elif c.get("use_parallel_residual"):
            x = x + y + ffn(i, p, norm(p + "input_layernorm", x))
        elif kind == "glm4":
            x = x + norm(p + "post_self_attn_layernorm", y)
            y = ffn(i, p, norm(p + "post_attention_layernorm", x))
            x = x + norm(p + "post_mlp_layernorm", y)
        else:
            x = x + branch * y
            x = x + branch * ffn(i, p, norm(p + "post_attention_layernorm", x))
    x = norm("model.norm", x)
    if tells(c, "ForSequenceClassification"):
        return linear(w, "score", x[-1:], len(c["id2label"]))
    if tells(c, "ForTokenClassification"):
        return linear(w, "score", x, len(c["id2label"]), True)
    head = table if c["tie_word_embeddings"] else w("lm_head.weight", c["vocab_size"], h)
    logits = x @ head.T / c.get("logits_scaling", 1)
    cap = c.get("final_logit_softcapping")
    return cap * torch.tanh(logits / cap) if cap else logits


def with_pictures(w, c, tokens):
    """The text part of a model that reads pictures, too, in the file beside a tensor of theirs."""
    w("vision_tower.vision_model.encoder.layers.0.self_attn.q_proj.weight", 4, 4)
    return llama_like(lambda name, *shape, **how: w("language_model." + name, *shape, **how), c["text_config"], tokens)


def with_pictures_within(w, c, tokens):
    """The same as newer files have it: all but the head stands in one model, text and pictures beside each other."""
    w("model.visual.blocks.0.attn.qkv.weight", 4, 4)
    compute = qwen_next if c["text_config"]["model_type"].startswith("qwen3_5") else llama_like
    return compute(lambda name, *shape, **how: w(name.replace("model.", "model.language_model."), *shape, **how), c["text_config"], tokens)


def with_texts_within(w, c, tokens):
    """Likewise, as Idefics 3 calls it."""
    w("model.vision_model.encoder.layers.0.self_attn.q_proj.weight", 4, 4)
    return llama_like(lambda name, *shape, **how: w(name.replace("model.", "model.text_model."), *shape, **how), c["text_config"], tokens)


def exaone(w, c, tokens):
    """Llama in GPT-2's names."""
    names = {"model.embed_tokens": "transformer.wte", "model.layers": "transformer.h", "model.norm": "transformer.ln_f", "input_layernorm": "ln_1",
             "post_attention_layernorm": "ln_2", "self_attn.o_proj": "attn.attention.out_proj", "self_attn": "attn.attention", "mlp.gate_proj": "mlp.c_fc_0",
             "mlp.up_proj": "mlp.c_fc_1", "mlp.down_proj": "mlp.c_proj"}

    def called(name, *shape, **how):
        for ours, theirs in names.items():
            name = name.replace(ours, theirs)
        return w(name, *shape, **how)

    return llama_like(called, {**c, "num_hidden_layers": c["num_layers"], "rms_norm_eps": c["layer_norm_epsilon"]}, tokens)


def minicpm(w, c, tokens):
    """Llama with factors: of embeddings, of what a part adds, of logits."""
    return llama_like(w, {**c, "embedding_multiplier": c["scale_emb"], "residual_multiplier": c["scale_depth"] / math.sqrt(c["num_hidden_layers"]),
                          "logits_scaling": c["hidden_size"] / c["dim_model_base"]}, tokens)


def internlm2(w, c, tokens):
    """Llama in other names; rows of a head of keys' queries, then its key, then its value."""
    h, heads, kv = c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"]
    width, share = h // heads, heads // kv
    names = {"embed_tokens": "tok_embeddings", "lm_head": "output", "input_layernorm": "attention_norm", "post_attention_layernorm": "ffn_norm",
             "self_attn.o_proj": "attention.wo", "mlp.gate_proj": "feed_forward.w1", "mlp.up_proj": "feed_forward.w3", "mlp.down_proj": "feed_forward.w2"}

    def called(name, *shape, **how):
        for ours, theirs in names.items():
            name = name.replace(ours, theirs)
        if "self_attn." not in name:
            return w(name, *shape, **how)
        p, which = name.split("self_attn.")
        rest = how if which.endswith("bias") else {}
        rows = w(p + "attention.wqkv." + which.split(".")[1], (heads + 2 * kv) * width, *shape[1:], **rest)
        groups = rows.reshape(kv, share + 2, width, *shape[1:])
        part = {"q": groups[:, :share], "k": groups[:, share:share + 1], "v": groups[:, share + 1:]}[which[0]]
        return part.reshape(*shape)

    return llama_like(called, {**c, "attention_bias": c["bias"]}, tokens)


def modernbert_decoder(w, c, tokens):
    """ModernBERT that looks back; its window is half of what is told."""
    h, f, heads, slid = c["hidden_size"], c["intermediate_size"], c["num_attention_heads"], c["local_attention"] // 2
    norm = layer_norms(w, c["norm_eps"], False)

    table = w("model.embeddings.tok_embeddings.weight", c["vocab_size"], h, scale=1.0)
    x = norm("model.embeddings.norm", table[tokens])
    for i in range(c["num_hidden_layers"]):
        p, slides = f"model.layers.{i}.", slides_at(c, i)
        y = x if i == 0 else norm(p + "attn_norm", x)
        q, k, v = (heads_of(linear(w, f"{p}attn.{part}_proj", y, h), heads) for part in "qkv")
        turned = {**c, "rope_theta": c["local_rope_theta" if slides else "global_rope_theta"]}
        y = attend(rotate(q, turned), rotate(k, turned), v, 1 / math.sqrt(h // heads), window=slid if slides else None)
        x = x + linear(w, p + "attn.Wo", joined(y), h)
        gate, up = linear(w, p + "mlp.Wi", norm(p + "mlp_norm", x), 2 * f).split(f, -1)
        x = x + linear(w, p + "mlp.Wo", gelu(gate) * up, h)
    x = norm("lm_head.norm", gelu(linear(w, "lm_head.dense", norm("model.final_norm", x), h)))
    return x @ table.T + w("decoder.bias", c["vocab_size"], scale=0.3)


def gpt_oss(w, c, tokens):
    """Attention with sinks, experts with biases, whose gates and others take turns in one tensor [experts, in, out]."""
    h, f, heads, kv, width = c["hidden_size"], c["intermediate_size"], c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
    n, limit = c["num_local_experts"], c.get("swiglu_limit", 7.0)
    norm = rms_norms(w, c["rms_norm_eps"])

    def attention(i, p, x):
        q, k, v = (linear(w, p + name, x, count * width, c["attention_bias"]) for name, count in
                   (("q_proj", heads), ("k_proj", kv), ("v_proj", kv)))
        turned = {**c, "rope_theta": c["rope_parameters"]["rope_theta"],
                  "rope_scaling": c["rope_parameters"] if "factor" in c["rope_parameters"] else None} if "rope_parameters" in c else c
        q, k = rotate(heads_of(q, heads), turned), rotate(heads_of(k, kv), turned)
        y = attend(q, k, heads_of(v, kv), 1 / math.sqrt(width), sinks=w(p + "sinks", heads, scale=1.0),
                   window=c["sliding_window"] if c["layer_types"][i] == "sliding_attention" else None)
        return linear(w, p + "o_proj", joined(y), h, c["attention_bias"])

    def expert(p, e, x):
        both = x @ w(p + "gate_up_proj", n, h, 2 * f, scale=0.4)[e] + w(p + "gate_up_proj_bias", n, 2 * f, scale=0.5)[e]
        gate, up = both[:, ::2].clamp(max=limit), both[:, 1::2].clamp(-limit, limit)
        hidden = (up + 1) * gate / (1 + torch.exp(-1.702 * gate))
        return hidden @ w(p + "down_proj", n, f, h, scale=0.3)[e] + w(p + "down_proj_bias", n, h, scale=0.3)[e]

    def ffn(p, x):
        best, which = torch.topk(linear(w, p + "router", x, n, True), c["num_experts_per_tok"], -1)
        shares = torch.softmax(best, -1)
        return sum((shares * (which == e)).sum(-1, keepdim=True) * expert(p + "experts.", e, x) for e in range(n))

    x = w("model.embed_tokens.weight", c["vocab_size"], h, scale=1.0)[tokens]
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        x = x + attention(i, p + "self_attn.", norm(p + "input_layernorm", x))
        x = x + ffn(p + "mlp.", norm(p + "post_attention_layernorm", x))
    return norm("model.norm", x) @ w("lm_head.weight", c["vocab_size"], h).T


def near_shares(scores, margin):
    """Of two choices each one's share of those that are not far behind it, SparseMixer's without noise."""
    which = scores.argmax(-1, keepdim=True)
    left = scores.masked_fill(torch.arange(scores.shape[1]) == which, -math.inf)
    shares = torch.zeros_like(scores)
    for of in (scores, left):
        top, chosen = of.max(-1, keepdim=True)
        far = (top - scores) / torch.maximum(scores.abs(), top) > margin
        shares = shares + torch.softmax(of.masked_fill(far, -math.inf), -1) * (torch.arange(scores.shape[1]) == chosen)
    return shares


def phimoe(w, c, tokens):
    h, f, heads, kv = c["hidden_size"], c["intermediate_size"], c["num_attention_heads"], c["num_key_value_heads"]
    bias, n = c["attention_bias"], c["num_local_experts"]
    norm = layer_norms(w, c["rms_norm_eps"])

    def ffn(p, x):
        shares = near_shares(linear(w, p + "gate", x, n), 2 * c["router_jitter_noise"])
        return sum(shares[:, e:e + 1] * linear(w, f"{p}experts.{e}.w2", silu(linear(w, f"{p}experts.{e}.w1", x, f)) *
                                               linear(w, f"{p}experts.{e}.w3", x, f), h) for e in range(n))

    x = w("model.embed_tokens.weight", c["vocab_size"], h, scale=1.0)[tokens]
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        y, a = norm(p + "input_layernorm", x), p + "self_attn."
        q, k, v = (heads_of(linear(w, a + name, y, m * h // heads, bias), m) for name, m in
                   (("q_proj", heads), ("k_proj", kv), ("v_proj", kv)))
        turned = rotary_of(c, None)
        y = attend(rotate(q, turned), rotate(k, turned), v, 1 / math.sqrt(h // heads), window=c.get("sliding_window"))
        x = x + linear(w, a + "o_proj", joined(y), h, bias)
        x = x + ffn(p + "block_sparse_moe.", norm(p + "post_attention_layernorm", x))
    x, table = norm("model.norm", x), w("lm_head.weight", c["vocab_size"], h)
    return x @ table.T + (w("lm_head.bias", c["vocab_size"], scale=0.3) if c.get("lm_head_bias") else 0)


def llama4(w, c, tokens):
    """Three layers of four turn and look at their chunk; the others look at all, and their queries grow."""
    h, f, heads, kv, width = c["hidden_size"], c["intermediate_size"], c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
    n, place = c["num_local_experts"], torch.arange(len(tokens), dtype=torch.float64)
    norm = rms_norms(w, c["rms_norm_eps"])

    def attention(i, p, x):
        q, k, v = (heads_of(linear(w, p + name, x, m * width), m) for name, m in
                   (("q_proj", heads), ("k_proj", kv), ("v_proj", kv)))
        bias = None
        if c["no_rope_layers"][i] == 1:
            q, k = rotate(q, rotary_of(c, None)), rotate(k, rotary_of(c, None))
            if c["use_qk_norm"]:
                q, k = rms_norm(q, 1, c["rms_norm_eps"]), rms_norm(k, 1, c["rms_norm_eps"])
            chunk = place // c["attention_chunk_size"]
            bias = torch.where(chunk[None, :] < chunk[:, None], -math.inf, 0.0)
        elif c["attn_temperature_tuning"]:
            q = q * (1 + c["attn_scale"] * torch.log1p(torch.floor((place + 1) / c["floor_scale"])))[:, None]
        return linear(w, p + "o_proj", joined(attend(q, k, v, 1 / math.sqrt(width), bias=bias)), h)

    def dense(p, x, wide):
        return linear(w, p + "down_proj", silu(linear(w, p + "gate_proj", x, wide)) * linear(w, p + "up_proj", x, wide), h)

    def expert(p, e, x):
        gate, up = (x @ w(p + "gate_up_proj", n, h, 2 * f, scale=0.3)[e]).split(f, -1)
        return (silu(gate) * up) @ w(p + "down_proj", n, f, h, scale=0.3)[e]

    def ffn(i, p, x):
        if i not in c["moe_layers"]:
            return dense(p, x, c["intermediate_size_mlp"])
        best, which = torch.topk(linear(w, p + "router", x, n), c["num_experts_per_tok"], -1)
        y = dense(p + "shared_expert.", x, f)
        for e in range(n):
            chosen = which == e
            share = (torch.sigmoid(best) * chosen).sum(-1, keepdim=True)
            y = y + chosen.any(-1, keepdim=True) * expert(p + "experts.", e, x * share)
        return y

    x = w("model.embed_tokens.weight", c["vocab_size"], h, scale=1.0)[tokens]
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        x = x + attention(i, p + "self_attn.", norm(p + "input_layernorm", x))
        x = x + ffn(i, p + "feed_forward.", norm(p + "post_attention_layernorm", x))
    return norm("model.norm", x) @ w("lm_head.weight", c["vocab_size"], h).T


def modernbert(w, c, tokens):
    """An encoder whose positions turn; layers but every third look at what is near."""
    h, f, heads = c["hidden_size"], c["intermediate_size"], c["num_attention_heads"]
    place = torch.arange(len(tokens))
    far = (place[None, :] - place[:, None]).abs() > c["local_attention"] // 2
    norm = layer_norms(w, c["norm_eps"], False)

    def rotated(x, slides):
        if "rope_parameters" in c:
            return rotate(x, rotary_of(c, slides))
        return rotate(x, {**c, "rope_theta": c["local_rope_theta" if slides else "global_rope_theta"]})

    table = w("model.embeddings.tok_embeddings.weight", c["vocab_size"], h, scale=1.0)
    x = norm("model.embeddings.norm", table[tokens])
    for i in range(c["num_hidden_layers"]):
        p, slides = f"model.layers.{i}.", slides_at(c, i)
        slides = i % c["global_attn_every_n_layers"] != 0 if slides is None else slides
        y = x if i == 0 else norm(p + "attn_norm", x)
        q, k, v = (heads_of(part, heads) for part in linear(w, p + "attn.Wqkv", y, 3 * h, c["attention_bias"]).split(h, -1))
        y = attend(rotated(q, slides), rotated(k, slides), v, 1 / math.sqrt(h // heads), causal=False,
                   bias=torch.where(far, -math.inf, 0.0) if slides else None)
        x = x + linear(w, p + "attn.Wo", joined(y), h, c["attention_bias"])
        gate, up = linear(w, p + "mlp.Wi", norm(p + "mlp_norm", x), 2 * f, c["mlp_bias"]).split(f, -1)
        x = x + linear(w, p + "mlp.Wo", gelu(gate) * up, h, c["mlp_bias"])
    x = norm("model.final_norm", x)
    if tells(c, "ForSequenceClassification"):
        x = x[:1] if c["classifier_pooling"] == "cls" else x.mean(0)[None]
        return linear(w, "classifier", norm("head.norm", gelu(linear(w, "head.dense", x, h))), len(c["id2label"]), True)
    if not tells(c, "ForMaskedLM"):
        return x @ table.T
    x = norm("head.norm", gelu(linear(w, "head.dense", x, h)))
    return x @ table.T + w("decoder.bias", c["vocab_size"], scale=0.3)


def fused_experts(w, p, x, shares, width, opens=None):
    """Tensors of all experts, rows of gates before those of what they open; shares[token, expert]."""
    n, h = shares.shape[1], x.shape[1]
    both, downs, y = w(p + "experts.gate_up_proj", n, 2 * width, h, scale=0.3), w(p + "experts.down_proj", n, h, width, scale=0.3), 0
    for e in range(n):
        gate, up = (x @ both[e].T).split(width, -1)
        y = y + shares[:, e:e + 1] * (((opens or silu)(gate) * up) @ downs[e].T)
    return y


def deepseek_shares(w, c, p, x):
    """What a token takes of each expert: the best of all, or of the best groups; V3 compares with a bias added."""
    count, groups, third = c["n_routed_experts"], c["n_group"], c["model_type"] in ("deepseek_v3", "kimi_k2", "glm4_moe", "glm4_moe_lite", "dots1")
    scores = linear(w, p + "gate", x, count)
    shares = torch.sigmoid(scores) if third else torch.softmax(scores, -1)
    compared = shares
    if third:
        compared = shares + w(p + "gate.e_score_correction_bias", count, scale=0.3)
    pairs = third or c["model_type"] == "mistral4"
    if pairs or c["topk_method"] == "group_limited_greedy":
        parted = compared.view(-1, groups, count // groups)
        good = torch.topk(parted, 2, -1)[0].sum(-1) if pairs else parted.max(-1)[0]
        chosen = torch.zeros_like(good).scatter(1, torch.topk(good, c["topk_group"], -1)[1], 1)
        compared = (parted * chosen[..., None]).flatten(1)
    taken = torch.zeros_like(shares).scatter(1, torch.topk(compared, c["num_experts_per_tok"], -1)[1], 1) * shares
    return taken / taken.sum(-1, keepdim=True) if c["norm_topk_prob"] else taken


def deepseek_v2(w, c, tokens):
    """Keys and values from a few features (multi-head latent attention); one turned key for all heads."""
    h, heads, latent = c["hidden_size"], c["num_attention_heads"], c["kv_lora_rank"]
    still, turned, wide = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"]
    fused = c["model_type"] == "mistral4"
    if fused:
        c = {**rotary_of(c, False), "partial_rotary_factor": 1.0}
    scaling, scale = c.get("rope_scaling"), (still + turned) ** -0.5
    if scaling:
        scale *= (0.1 * scaling["mscale_all_dim"] * math.log(scaling["factor"]) + 1) ** 2

    def norm(name, x):
        return rms_norm(x, w(name + ".weight", x.shape[-1], scale=0.2, about=1), 1e-6 if "_a_" in name else c["rms_norm_eps"])

    def gated(p, x, width):
        return linear(w, p + "down_proj", silu(linear(w, p + "gate_proj", x, width)) * linear(w, p + "up_proj", x, width), h)

    x = w("model.embed_tokens.weight", c["vocab_size"], h, scale=0.5)[tokens]
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        a, y = p + "self_attn.", norm(p + "input_layernorm", x)
        if c["q_lora_rank"]:
            q = linear(w, a + "q_b_proj", norm(a + "q_a_layernorm", linear(w, a + "q_a_proj", y, c["q_lora_rank"])), heads * (still + turned))
        else:
            q = linear(w, a + "q_proj", y, heads * (still + turned))
        q_still, q_turned = heads_of(q, heads).split([still, turned], -1)
        few, k_turned = linear(w, a + "kv_a_proj_with_mqa", y, latent + turned).split([latent, turned], -1)
        kv = heads_of(linear(w, a + "kv_b_proj", norm(a + "kv_a_layernorm", few), heads * (still + wide)), heads)
        k_still, v = kv.split([still, wide], -1)
        k = torch.cat([k_still, rotate(k_turned[None], c).expand(heads, -1, -1)], -1)
        q = torch.cat([q_still, rotate(q_turned, c)], -1)
        if fused:
            q = q * (1 + scaling["llama_4_scaling_beta"] * torch.log1p(torch.arange(q.shape[1]) // scaling["original_max_position_embeddings"]))[:, None]
        y = attend(q, k, v, scale)
        x = x + linear(w, a + "o_proj", joined(y), h)
        y, p = norm(p + "post_attention_layernorm", x), p + "mlp."
        if i < c["first_k_dense_replace"]:
            x = x + gated(p, y, c["intermediate_size"])
            continue
        width, shares = c["moe_intermediate_size"], deepseek_shares(w, c, p, y)
        made = fused_experts(w, p, y, shares, width) if fused else sum(
            shares[:, e:e + 1] * gated(f"{p}experts.{e}.", y, width) for e in range(c["n_routed_experts"]))
        x = x + gated(p + "shared_experts.", y, c["n_shared_experts"] * width) + c["routed_scaling_factor"] * made
    return linear(w, "lm_head", norm("model.norm", x), c["vocab_size"])


def olmo2(w, c, tokens):
    """Norms behind the branches; queries and keys are normed before they are divided into heads."""
    h, f, heads, kv = (c[k] for k in ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads"))
    width = h // heads
    norm = rms_norms(w, c["rms_norm_eps"])

    x = w("model.embed_tokens.weight", c["vocab_size"], h, scale=0.5)[tokens]
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        a = p + "self_attn."
        q = heads_of(norm(a + "q_norm", linear(w, a + "q_proj", x, heads * width)), heads)
        k = heads_of(norm(a + "k_norm", linear(w, a + "k_proj", x, kv * width)), kv)
        v = heads_of(linear(w, a + "v_proj", x, kv * width), kv)
        y = joined(attend(rotate(q, c), rotate(k, c), v, 1 / math.sqrt(width)))
        x = x + norm(p + "post_attention_layernorm", linear(w, a + "o_proj", y, h))
        y = silu(linear(w, p + "mlp.gate_proj", x, f)) * linear(w, p + "mlp.up_proj", x, f)
        x = x + norm(p + "post_feedforward_layernorm", linear(w, p + "mlp.down_proj", y, h))
    return linear(w, "lm_head", norm("model.norm", x), c["vocab_size"])


# What types of later years changed of Llama: norms behind both parts, of queries and keys (of each head, of all together, or
# when they have turned), of means, with scales less 1; squares of relu, without a gate.
TRAITS = {
    "olmo3": {"behind", "wide"}, "exaone4": {"behind", "each", "straight"}, "seed_oss": set(), "ernie4_5": set(), "helium": set(),
    "ministral3": set(), "jais2": {"relu2", "means"}, "flex_olmo": {"behind", "wide"},
    "cwm": set(), "hunyuan_v1_moe": {"each", "turned"}, "minimax_m2": {"wide"}, "granitemoeshared": set(),
    "hunyuan_v1_dense": {"each", "turned"}, "arcee": {"relu2"}, "nemotron": {"relu2", "means", "less 1"},
    "apertus": {"each", "xielu"}, "persimmon": {"relu2", "means", "fused"}, "glm4_moe": {"each"}, "dots1": {"each"}, "granitemoe": set(), "ernie4_5_moe": set(),
}
HEAD_NORMS = {"hunyuan_v1_dense": ("query_layernorm", "key_layernorm"), "hunyuan_v1_moe": ("query_layernorm", "key_layernorm"), "persimmon": ("q_layernorm", "k_layernorm")}


# Types that every_model_type.sh alone tries: they keep their tensors as others do.
GENERATED_ALONE = {"xglm"} | set(TRAITS) - {"granitemoeshared", "minimax_m2", "granitemoe", "ernie4_5_moe", "persimmon", "apertus"} | {
    "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text", "qwen3_vl_text", "qwen3_vl_moe_text", "kimi_k2", "ernie", "megatron-bert", "data2vec-text", "xlm-roberta-xl", "eurobert", "nomic_bert", "clip", "roberta-prelayernorm", "exaone", "minicpm", "internlm2", "modernbert-decoder"}


def all_experts_in_one(w, c, p, x):
    """Granite: tensors of all experts, rows of gates before those of what they open."""
    count, k, f, h = c["num_local_experts"], c["num_experts_per_tok"], c["intermediate_size"], c["hidden_size"]
    best, which = torch.topk(linear(w, p + "router.layer", x, count), k, -1)
    shares = torch.zeros(len(x), count).scatter(1, which, torch.softmax(best, -1))
    into, out = w(p + "input_linear.weight", count, 2 * f, h), w(p + "output_linear.weight", count, h, f)
    made = 0
    for e in range(count):
        gate, up = (x @ into[e].T).split(f, -1)
        made = made + shares[:, e:e + 1] * ((silu(gate) * up) @ out[e].T)
    return made


def xielu(w, p, x):
    """A function of two numbers that are learned, beside two that are kept."""
    def softplus(number):
        return torch.log(1 + torch.exp(number))
    beta, eps = w(p + "beta", scale=0.1, about=0.5), w(p + "eps", scale=0, about=-1e-6)
    above, below = softplus(w(p + "alpha_p", 1, scale=0.5)), beta + softplus(w(p + "alpha_n", 1, scale=0.5))
    return torch.where(x > 0, above * x ** 2, below * (torch.expm1(torch.minimum(x, eps)) - x)) + beta * x


def biased_shares(w, c, p, x):
    """ERNIE: shares of the softmax that are compared with a bias added, and then add up to 1."""
    shares = torch.softmax(linear(w, p + "gate", x, c["moe_num_experts"]), -1)
    compared = shares + w(p + "moe_statics.e_score_correction_bias", 1, c["moe_num_experts"], scale=0.3)
    taken = torch.zeros_like(shares).scatter(1, torch.topk(compared, c["moe_k"], -1)[1], 1) * shares
    return taken / taken.sum(-1, keepdim=True)


def shares_beside_bias(w, c, p, x):
    """MiniMax M2: sigmoids that are compared with a bias added, and then add up to 1."""
    shares = torch.sigmoid(linear(w, p + "gate", x, c["num_local_experts"]))
    compared = shares + w(p + "e_score_correction_bias", c["num_local_experts"], scale=0.3)
    taken = torch.zeros_like(shares).scatter(1, torch.topk(compared, c["num_experts_per_tok"], -1)[1], 1) * shares
    return taken / taken.sum(-1, keepdim=True)


def newer(w, c, tokens):
    """Llama with the traits of a type."""
    kind, h, heads = c["model_type"], c["hidden_size"], c["num_attention_heads"]
    traits, kv = TRAITS[kind], heads if "fused" in TRAITS[kind] else c["num_key_value_heads"]
    width = c.get("head_dim") or h // heads
    bias = c.get("attention_bias", c.get("use_bias", "fused" in traits))
    mlp_bias = c.get("mlp_bias", c.get("use_bias", "fused" in traits))
    out_bias = {"seed_oss": c.get("attention_out_bias"), "helium": False, "glm4_moe": False}.get(kind, bias)
    no_norms = "use_qk_norm" in c and not c["use_qk_norm"]

    def norm(name, x):
        scale = w(name + ".weight", x.shape[-1], scale=0.2, about=0 if "less 1" in traits else 1) + ("less 1" in traits)
        if "means" in traits:
            return layer_norm(x, scale, w(name + ".bias", x.shape[-1], scale=0.2), c.get("norm_eps", c.get("layer_norm_eps")))
        return rms_norm(x, scale, c["rms_norm_eps"])

    def attention(i, p, x):
        slides, parts = slides_at(c, i), (("q", heads), ("k", kv), ("v", kv))
        names = HEAD_NORMS.get(kind, ("q_norm", "k_norm"))
        if "fused" in traits:
            fused = linear(w, p + "query_key_value", x, 3 * heads * width, True)
            q, k, v = fused.view(-1, heads, 3 * width).transpose(0, 1).split(width, -1)
            q, k = norm(p + names[0], q), norm(p + names[1], k)
        else:
            q, k, v = (linear(w, f"{p}{n}_proj", x, m * width, bias) for n, m in parts)
            if "wide" in traits:
                q, k = norm(p + names[0], q), norm(p + names[1], k)
            q, k, v = (heads_of(y, m) for y, (_, m) in zip((q, k, v), parts))
        each = "each" in traits and not no_norms
        if each and "turned" not in traits:
            q, k = norm(p + names[0], q), norm(p + names[1], k)
        if slides or "straight" not in traits:
            q, k = (rotate(y, rotary_of(c, slides)) for y in (q, k))
        if kind == "ministral3":
            said = c["rope_parameters"]
            place = torch.arange(x.shape[0]) // said["original_max_position_embeddings"]
            q = q * (1 + said["llama_4_scaling_beta"] * torch.log1p(place.double()))[:, None]
        if each and "turned" in traits:
            q, k = norm(p + names[0], q), norm(p + names[1], k)
        y = attend(q, k, v, c.get("attention_multiplier", 1 / math.sqrt(width)), window=c["sliding_window"] if slides else None)
        return linear(w, p + ("dense" if "fused" in traits else "o_proj"), joined(y), h, out_bias)

    def gated(p, x, f):
        return linear(w, p + "down_proj", silu(linear(w, p + "gate_proj", x, f, mlp_bias)) *
                      linear(w, p + "up_proj", x, f, mlp_bias), h, mlp_bias)

    def ffn(i, p, x):
        if kind.startswith("granitemoe"):
            made = all_experts_in_one(w, c, p + "block_sparse_moe.", x)
            if kind == "granitemoe":
                return made
            gate, up = linear(w, p + "shared_mlp.input_linear", x, 2 * c["shared_intermediate_size"]).split(c["shared_intermediate_size"], -1)
            return made + linear(w, p + "shared_mlp.output_linear", silu(gate) * up, h)
        if kind == "hunyuan_v1_moe":
            return gated(p + "mlp.shared_mlp.", x, c["intermediate_size"]) + experts(w, c, p + "mlp.", x, (
                "gate.wg", "experts.{}.gate_proj", "experts.{}.up_proj", "experts.{}.down_proj", c["num_experts"], c["moe_topk"],
                c["intermediate_size"], True))
        if kind == "flex_olmo":
            return experts(w, c, p + "mlp.", x, ("gate", "experts.{}.gate_proj", "experts.{}.up_proj", "experts.{}.down_proj",
                                                 c["num_experts"], c["num_experts_per_tok"], c["intermediate_size"], False))
        if kind == "minimax_m2":
            p, f = p + "block_sparse_moe.", c["intermediate_size"]
            shares = shares_beside_bias(w, c, p, x)
            return sum(shares[:, e:e + 1] * linear(w, f"{p}experts.{e}.w2", silu(linear(w, f"{p}experts.{e}.w1", x, f)) * linear(
                w, f"{p}experts.{e}.w3", x, f), h) for e in range(c["num_local_experts"]))
        up, down = ("dense_h_to_4h", "dense_4h_to_h") if "fused" in traits else ("up_proj", "down_proj")
        p += "mlp."
        if "xielu" in traits:
            return linear(w, p + down, xielu(w, p + "act_fn.", linear(w, p + up, x, c["intermediate_size"])), h)
        if "relu2" in traits:
            return linear(w, p + down, linear(w, p + up, x, c["intermediate_size"], mlp_bias).clamp(min=0) ** 2, h, mlp_bias)
        if i < c.get("first_k_dense_replace", c.get("moe_layer_start_index", c["num_hidden_layers"])):
            return gated(p, x, c["intermediate_size"])
        shares = biased_shares(w, c, p, x) if kind == "ernie4_5_moe" else deepseek_shares(w, c, p, x)
        shared, f = c.get("n_shared_experts", c.get("moe_num_shared_experts")), c["moe_intermediate_size"]
        made = sum(shares[:, e:e + 1] * gated(f"{p}experts.{e}.", x, f) for e in range(shares.shape[1]))
        return gated(p + "shared_experts.", x, shared * f) + c.get("routed_scaling_factor", 1) * made

    table = w("model.embed_tokens.weight", c["vocab_size"], h, scale=0.5)
    x, share = table[tokens] * c.get("embedding_multiplier", 1), c.get("residual_multiplier", 1)
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        if "behind" in traits:
            x = x + norm(p + "post_attention_layernorm", attention(i, p + "self_attn.", x))
            x = x + norm(p + "post_feedforward_layernorm", ffn(i, p, x))
        else:
            names = ("attention", "feedforward") if kind == "apertus" else ("input", "post_attention")
            x = x + share * attention(i, p + "self_attn.", norm(f"{p}{names[0]}_layernorm", x))
            x = x + share * ffn(i, p, norm(f"{p}{names[1]}_layernorm", x))
    x = norm("model.final_layernorm" if "fused" in traits else "model.norm", x)
    head = table if c["tie_word_embeddings"] else w("lm_head.weight", c["vocab_size"], h)
    return x @ head.T / c.get("logits_scaling", 1)


def convolved(kernel, x):
    """A causal convolution of each feature: kernel[features, 1, taps], x[length, features]."""
    taps = kernel.shape[-1]
    before = torch.cat([torch.zeros(taps - 1, x.shape[1], dtype=x.dtype), x])
    return sum(kernel[:, 0, j] * before[j:j + x.shape[0]] for j in range(taps))


def lfm2(w, c, tokens):
    """Gates around short convolutions, and attention in some layers (transformers' modeling_lfm2.py)."""
    h, heads, kv, bias = c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"], c["conv_bias"]
    f = c["intermediate_size"]
    if c.get("block_auto_adjust_ff_dim", "num_experts" not in c):
        f = -(-int(c["block_ffn_dim_multiplier"] * int(2 * f / 3)) // c["block_multiple_of"]) * c["block_multiple_of"]
    norm = rms_norms(w, c["norm_eps"])

    def mixer(i, p, x):
        if c["layer_types"][i] == "conv" if "layer_types" in c else i not in c["full_attn_idxs"]:
            b, g, y = linear(w, p + "conv.in_proj", x, 3 * h, bias).split(h, -1)
            y = convolved(w(p + "conv.conv.weight", h, 1, c["conv_L_cache"], scale=0.5), b * y)
            if bias:
                y = y + w(p + "conv.conv.bias", h, scale=0.2)
            return linear(w, p + "conv.out_proj", g * y, h, bias)
        p += "self_attn."
        q, k, v = (heads_of(linear(w, f"{p}{n}_proj", x, m * (h // heads)), m) for n, m in (("q", heads), ("k", kv), ("v", kv)))
        q, k = rotate(norm(p + "q_layernorm", q), c), rotate(norm(p + "k_layernorm", k), c)
        return linear(w, p + "out_proj", joined(attend(q, k, v, 1 / math.sqrt(h // heads))), h)

    def gated(p, x, f):
        return linear(w, p + "w2", silu(linear(w, p + "w1", x, f)) * linear(w, p + "w3", x, f), h)

    def ffn(i, p, x):
        if i < c.get("num_dense_layers", c["num_hidden_layers"]):
            return gated(p, x, f)
        shares = torch.sigmoid(linear(w, p + "gate", x, c["num_experts"]))
        chosen = torch.topk(shares + w(p + "expert_bias", c["num_experts"], scale=0.3), c["num_experts_per_tok"], -1)[1]
        taken = torch.zeros_like(shares).scatter(1, chosen, 1) * shares
        taken = taken / taken.sum(-1, keepdim=True) * c["routed_scaling_factor"]
        return sum(taken[:, e:e + 1] * gated(f"{p}experts.{e}.", x, c["moe_intermediate_size"]) for e in range(c["num_experts"]))

    table = w("model.embed_tokens.weight", c["vocab_size"], h, scale=0.5)
    x = table[tokens]
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        x = x + mixer(i, p, norm(p + "operator_norm", x))
        x = x + ffn(i, p + "feed_forward.", norm(p + "ffn_norm", x))
    return norm("model.embedding_norm", x) @ table.T


def selective_scan(w, p, x, sizes, bias, convolution_bias, norm):
    """The selective scan, place by place (transformers' modeling_mamba.py); `norm` of what steps come from, B and C."""
    wide, rank, n, taps = sizes
    u, z = linear(w, p + "in_proj", x, 2 * wide, bias).split(wide, -1)
    u = convolved(w(p + "conv1d.weight", wide, 1, taps, scale=0.5), u)
    u = silu(u + w(p + "conv1d.bias", wide, scale=0.2) if convolution_bias else u)
    parts = linear(w, p + "x_proj", u, rank + 2 * n).split([rank, n, n], -1)
    parts = [norm(p + name, part) for name, part in zip(("dt_layernorm", "b_layernorm", "c_layernorm"), parts)]
    step = torch.nn.functional.softplus(linear(w, p + "dt_proj", parts[0], wide, True))
    rate = -torch.exp(w(p + "A_log", wide, n, scale=0.5))
    state, said = torch.zeros(wide, n, dtype=x.dtype), []
    for t in range(x.shape[0]):
        state = torch.exp(step[t][:, None] * rate) * state + (step[t] * u[t])[:, None] * parts[1][t]
        said.append(state @ parts[2][t])
    y = (torch.stack(said) + u * w(p + "D", wide, scale=0.5)) * silu(z)
    return linear(w, p + "out_proj", y, x.shape[-1], bias)


def mamba(w, c, tokens):
    """Layers of selective scans alone; those of Falcon have norms without scales."""
    h = c["hidden_size"]
    sizes = (c.get("intermediate_size", c["expand"] * h), c["time_step_rank"] if c["time_step_rank"] != "auto" else -(-h // 16),
             c["state_size"], c["conv_kernel"])

    def bare(name, x):
        return rms_norm(x, 1, c["mixer_rms_eps"]) if "mixer_rms_eps" in c else x

    norm = rms_norms(w, c["layer_norm_epsilon"])

    table = w("backbone.embeddings.weight", c["vocab_size"], h, scale=0.5)
    x = table[tokens]
    for i in range(c["num_hidden_layers"]):
        p = f"backbone.layers.{i}."
        x = x + selective_scan(w, p + "mixer.", norm(p + "norm", x), sizes, c["use_bias"], c["use_conv_bias"], bare)
    head = table if c.get("tie_word_embeddings", True) else w("lm_head.weight", c["vocab_size"], h)
    return norm("backbone.norm_f", x) @ head.T


def jamba(w, c, tokens):
    """Selective scans whose inputs have norms, and attention without positions; experts in some layers (modeling_jamba.py)."""
    h, heads, kv, f = c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"], c["intermediate_size"]
    sizes = c["mamba_expand"] * h, -(-h // 16) if c["mamba_dt_rank"] == "auto" else c["mamba_dt_rank"], c["mamba_d_state"], c["mamba_d_conv"]
    norm = rms_norms(w, c["rms_norm_eps"])

    def attention(p, x):
        q, k, v = (heads_of(linear(w, f"{p}{n}_proj", x, m * (h // heads)), m) for n, m in (("q", heads), ("k", kv), ("v", kv)))
        return linear(w, p + "o_proj", joined(attend(q, k, v, 1 / math.sqrt(h // heads))), h)

    def ffn(i, p, x):
        if i % c["expert_layer_period"] == c["expert_layer_offset"] and c["num_experts"] > 1:
            return experts(w, c, p, x, ("router", "experts.{}.gate_proj", "experts.{}.up_proj", "experts.{}.down_proj", c["num_experts"],
                                        c["num_experts_per_tok"], f, False))
        return linear(w, p + "down_proj", silu(linear(w, p + "gate_proj", x, f)) * linear(w, p + "up_proj", x, f), h)

    table = w("model.embed_tokens.weight", c["vocab_size"], h, scale=0.5)
    x = table[tokens]
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        y = norm(p + "input_layernorm", x)
        attends = i % c["attn_layer_period"] == c["attn_layer_offset"]
        x = x + (attention(p + "self_attn.", y) if attends else selective_scan(
            w, p + "mamba.", y, sizes, c["mamba_proj_bias"], c["mamba_conv_bias"], norm))
        x = x + ffn(i, p + "feed_forward.", norm(p + "pre_ff_layernorm", x))
    head = table if c["tie_word_embeddings"] else w("lm_head.weight", c["vocab_size"], h)
    return norm("model.final_layernorm", x) @ head.T


def head_scan(w, p, x, sizes, epsilon, bias, convolution_bias, by_group=False, limit=None, normed="behind", scales=(1, 1, 1, 1, 1)):
    """The scan of Mamba 2, place by place (transformers' modeling_mamba2.py); its norm of each group of heads, or of all, behind the gate,
    before it or not at all; the gate, u, B, C and steps times a number each."""
    heads, width, groups, n, taps = sizes
    inner, read = heads * width, groups * n
    parts = linear(w, p + "in_proj", x, 2 * inner + 2 * read + heads, bias).split([inner, inner, read, read, heads], -1)
    z, u, b, g, step = (part * scale for part, scale in zip(parts, scales))
    mixed = torch.cat([u, b, g], -1)
    mixed = convolved(w(p + "conv1d.weight", inner + 2 * read, 1, taps, scale=0.5), mixed)
    mixed = silu(mixed + w(p + "conv1d.bias", inner + 2 * read, scale=0.2) if convolution_bias else mixed)
    u, b, g = mixed.split([inner, read, read], -1)
    b, g = (part.view(-1, groups, n).repeat_interleave(heads // groups, 1) for part in (b, g))
    u, step = u.view(-1, heads, width), torch.nn.functional.softplus(step + w(p + "dt_bias", heads, scale=0.5))
    step = step if limit is None else step.clamp(*limit)
    rate = -torch.exp(w(p + "A_log", heads, scale=0.5))
    state, said = torch.zeros(heads, width, n, dtype=x.dtype), []
    for t in range(x.shape[0]):
        state = torch.exp(step[t] * rate)[:, None, None] * state + (step[t][:, None] * u[t])[:, :, None] * b[t][:, None]
        said.append((state * g[t][:, None]).sum(-1))
    y = (torch.stack(said) + u * w(p + "D", heads, scale=0.5)[:, None]).flatten(1)
    y = y * silu(z) if normed != "before" else y
    if normed:
        y = rms_norm(y.view(-1, groups if by_group else 1, inner // (groups if by_group else 1)), 1, epsilon).flatten(1)
        y = y * w(p + "norm.weight", inner, scale=0.2, about=1)
    y = y * silu(z) if normed == "before" else y
    return linear(w, p + "out_proj", y, x.shape[-1], bias)


def mamba2(w, c, tokens):
    h, sizes = c["hidden_size"], [c[key] for key in ("num_heads", "head_dim", "n_groups", "state_size", "conv_kernel")]
    norm = rms_norms(w, c["layer_norm_epsilon"])

    x = w("backbone.embeddings.weight", c["vocab_size"], h, scale=0.5)[tokens]
    for i in range(c["num_hidden_layers"]):
        p = f"backbone.layers.{i}."
        x = x + head_scan(w, p + "mixer.", norm(p + "norm", x), sizes, c["layer_norm_epsilon"], c["use_bias"], c["use_conv_bias"],
                          limit=c.get("time_step_limit"))
    return norm("backbone.norm_f", x) @ w("lm_head.weight", c["vocab_size"], h).T


def nemotron_h(w, c, tokens):
    """A norm and one part a layer: a scan of Mamba 2, attention without positions, a hidden layer, or experts
    (transformers' modeling_nemotron_h.py)."""
    h, heads, kv, width = c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
    sizes = [c[key] for key in ("mamba_num_heads", "mamba_head_dim", "n_groups", "ssm_state_size", "conv_kernel")]
    norm = rms_norms(w, c["layer_norm_epsilon"])

    def attention(p, x):
        q, k, v = (heads_of(linear(w, f"{p}{n}_proj", x, m * width), m) for n, m in (("q", heads), ("k", kv), ("v", kv)))
        return linear(w, p + "o_proj", joined(attend(q, k, v, 1 / math.sqrt(width))), h)

    def hidden(p, x, f):
        return linear(w, p + "down_proj", torch.relu(linear(w, p + "up_proj", x, f)) ** 2, x.shape[-1])

    def sparse(p, x):
        n, choices, groups = c["n_routed_experts"], c["num_experts_per_tok"], c.get("n_group", 1)
        shares = torch.sigmoid(linear(w, p + "gate", x, n))
        scores = shares + w(p + "gate.e_score_correction_bias", n, scale=0.3)
        best = scores.view(-1, groups, n // groups).topk(2, -1)[0].sum(-1).topk(c.get("topk_group", 1), -1)[1]
        seen = torch.zeros(x.shape[0], groups).scatter(1, best, 1).repeat_interleave(n // groups, 1)
        chosen = torch.topk(scores.masked_fill(seen == 0, -1e9), choices, -1)[1]
        taken = torch.zeros_like(shares).scatter(1, chosen, 1) * shares
        taken = taken / taken.sum(-1, keepdim=True) * c.get("routed_scaling_factor", 1)
        few = linear(w, p + "fc1_latent_proj", x, c["moe_latent_size"])
        made = sum(taken[:, e:e + 1] * hidden(f"{p}experts.{e}.", few, c["moe_intermediate_size"]) for e in range(n))
        return linear(w, p + "fc2_latent_proj", made, h) + hidden(p + "shared_experts.", x, c["moe_shared_expert_intermediate_size"])

    x = w("backbone.embeddings.weight", c["vocab_size"], h, scale=0.5)[tokens]
    for i, kind in enumerate(c["hybrid_override_pattern"]):
        p = f"backbone.layers.{i}."
        y = norm(p + "norm", x)
        p += "mixer."
        x = x + (head_scan(w, p, y, sizes, c["layer_norm_epsilon"], c["use_bias"], c["use_conv_bias"], True) if kind == "M" else
                 attention(p, y) if kind == "*" else hidden(p, y, c["intermediate_size"]) if kind == "-" else sparse(p, y))
    return norm("backbone.norm_f", x) @ w("lm_head.weight", c["vocab_size"], h).T


def afmoe(w, c, tokens):
    """Gated heads, norms on both sides of each part, sigmoid shares of experts (transformers' modeling_afmoe.py)."""
    h, heads, kv, width = c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
    norm = rms_norms(w, c["rms_norm_eps"])

    def attention(p, x, window):
        q, k, v = (heads_of(linear(w, f"{p}{n}_proj", x, m * width), m) for n, m in (("q", heads), ("k", kv), ("v", kv)))
        q, k = norm(p + "q_norm", q), norm(p + "k_norm", k)
        if window:
            q, k = rotate(q, c), rotate(k, c)
        y = joined(attend(q, k, v, 1 / math.sqrt(width), window=c["sliding_window"] if window else None))
        return linear(w, p + "o_proj", y / (1 + torch.exp(-linear(w, p + "gate_proj", x, heads * width))), h)

    def gated(p, x, f):
        return linear(w, p + "down_proj", silu(linear(w, p + "gate_proj", x, f)) * linear(w, p + "up_proj", x, f), h)

    def sparse(p, x):
        n, f = c["num_experts"], c["moe_intermediate_size"]
        shares = torch.sigmoid(linear(w, p + "router.gate", x, n))
        chosen = torch.topk(shares + w(p + "expert_bias", n, scale=0.3), c["num_experts_per_tok"], -1)[1]
        taken = torch.zeros_like(shares).scatter(1, chosen, 1) * shares
        taken = taken / taken.sum(-1, keepdim=True) * c["route_scale"]
        made = sum(taken[:, e:e + 1] * gated(f"{p}experts.{e}.", x, f) for e in range(n))
        return made + gated(p + "shared_experts.", x, f * c["num_shared_experts"])

    x = w("model.embed_tokens.weight", c["vocab_size"], h, scale=0.5)[tokens] * (math.sqrt(h) if c["mup_enabled"] else 1)
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        window = (i + 1) % c["global_attn_every_n_layers"] != 0
        x = x + norm(p + "post_attention_layernorm", attention(p + "self_attn.", norm(p + "input_layernorm", x), window))
        y = norm(p + "pre_mlp_layernorm", x)
        made = gated(p + "mlp.", y, c["intermediate_size"]) if i < c["num_dense_layers"] else sparse(p + "mlp.", y)
        x = x + norm(p + "post_mlp_layernorm", made)
    return norm("model.norm", x) @ w("lm_head.weight", c["vocab_size"], h).T


def exaone_moe(w, c, tokens):
    """Norms of heads, layers with a window that turn and without that do not, DeepSeek's experts (modeling_exaone_moe.py)."""
    h, heads, kv, width = c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
    norm = rms_norms(w, c["rms_norm_eps"])

    def attention(p, x, window):
        q, k, v = (heads_of(linear(w, f"{p}{n}_proj", x, m * width), m) for n, m in (("q", heads), ("k", kv), ("v", kv)))
        q, k = norm(p + "q_norm", q), norm(p + "k_norm", k)
        q, k = (rotate(q, c), rotate(k, c)) if window else (q, k)
        return linear(w, p + "o_proj", joined(attend(q, k, v, 1 / math.sqrt(width), window=c["sliding_window"] if window else None)), h)

    def gated(p, x, f):
        return linear(w, p + "down_proj", silu(linear(w, p + "gate_proj", x, f)) * linear(w, p + "up_proj", x, f), h)

    def sparse(p, x):
        n, f = c["num_experts"], c["moe_intermediate_size"]
        shares = torch.sigmoid(linear(w, p + "gate", x, n))
        chosen = torch.topk(shares + w(p + "e_score_correction_bias", n, scale=0.3), c["num_experts_per_tok"], -1)[1]
        taken = torch.zeros_like(shares).scatter(1, chosen, 1) * shares
        taken = taken / taken.sum(-1, keepdim=True) * c["routed_scaling_factor"]
        return sum(taken[:, e:e + 1] * gated(f"{p}experts.{e}.", x, f) for e in range(n)) + gated(p + "shared_experts.", x, f * c["num_shared_experts"])

    x = w("model.embed_tokens.weight", c["vocab_size"], h, scale=0.5)[tokens]
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        x = x + attention(p + "self_attn.", norm(p + "input_layernorm", x), slides_at(c, i))
        y = norm(p + "post_attention_layernorm", x)
        x = x + (gated(p + "mlp.", y, c["intermediate_size"]) if c.get("mlp_layer_types", c.get("is_moe_layer"))[i] in ("dense", False) else sparse(p + "mlp.", y))
    return norm("model.norm", x) @ w("lm_head.weight", c["vocab_size"], h).T


def hybrid(w, c, tokens):
    """Granite 4: scans of Mamba 2 and attention without positions, experts beside a layer of all tokens or that alone; Bamba."""
    bamba = c["model_type"] == "bamba"
    h, heads, kv = c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"]
    sizes = [c[key] for key in ("mamba_n_heads", "mamba_d_head", "mamba_n_groups", "mamba_d_state", "mamba_d_conv")]
    norm = rms_norms(w, c["rms_norm_eps"])

    def attention(p, x):
        q, k, v = (heads_of(linear(w, f"{p}{n}_proj", x, m * (h // heads)), m) for n, m in (("q", heads), ("k", kv), ("v", kv)))
        if c.get("position_embedding_type", "rope") == "rope":
            q, k = (rotate(y, {"partial_rotary_factor": 0.5, **c} if bamba else c) for y in (q, k))
        return linear(w, p + "o_proj", joined(attend(q, k, v, c.get("attention_multiplier", 1 / math.sqrt(h // heads)))), h)

    def ffn(p, x):
        if bamba:
            p, f = p + "feed_forward.", c["intermediate_size"]
            return linear(w, p + "down_proj", silu(linear(w, p + "gate_proj", x, f)) * linear(w, p + "up_proj", x, f), h)
        f = c["shared_intermediate_size"]
        gate, up = linear(w, p + "shared_mlp.input_linear", x, 2 * f).split(f, -1)
        shared = linear(w, p + "shared_mlp.output_linear", silu(gate) * up, h)
        return shared + all_experts_in_one(w, c, p + "block_sparse_moe.", x) if c["num_local_experts"] else shared

    table = w("model.embed_tokens.weight", c["vocab_size"], h, scale=0.5)
    x, share = table[tokens] * c.get("embedding_multiplier", 1), c.get("residual_multiplier", 1)
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        y = norm(p + "input_layernorm", x)
        attends = i in c["attn_layer_indices"] if bamba else c["layer_types"][i] == "attention"
        y = attention(p + "self_attn.", y) if attends else head_scan(
            w, p + "mamba.", y, sizes, c["rms_norm_eps"], c["mamba_proj_bias"], c["mamba_conv_bias"])
        x = x + share * y
        x = x + share * ffn(p, norm(p + ("pre_ff_layernorm" if bamba else "post_attention_layernorm"), x))
    head = table if c["tie_word_embeddings"] else w("lm_head.weight", c["vocab_size"], h)
    return norm("model.final_layernorm" if bamba else "model.norm", x) @ head.T / c.get("logits_scaling", 1)


def minimax(w, c, tokens):
    """Lightning attention, place by place, beside attention; parts are added to what they read (modeling_minimax.py)."""
    h, heads, kv, width, layers = c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"], c["num_hidden_layers"]
    norm = rms_norms(w, c["rms_norm_eps"])

    def lightning(i, p, x):
        q, k, v = silu(linear(w, p + "qkv_proj", x, 3 * heads * width)).view(-1, heads, 3 * width).split(width, -1)
        kept = torch.exp(-(2 ** (-8 * (torch.arange(heads) + 1) / heads)) * (1 - i / (layers - 1 + 1e-5) + 1e-5))
        state, said = torch.zeros(heads, width, width, dtype=x.dtype), []
        for t in range(x.shape[0]):
            state = kept[:, None, None] * state + k[t][:, :, None] * v[t][:, None]
            said.append((state * q[t][:, :, None]).sum(1))
        said = norm(p + "norm", torch.stack(said).flatten(1))
        return linear(w, p + "out_proj", said * torch.sigmoid(linear(w, p + "output_gate", x, heads * width)), h)

    def attention(i, p, x):
        q, k, v = (heads_of(linear(w, f"{p}{n}_proj", x, m * width), m) for n, m in (("q", heads), ("k", kv), ("v", kv)))
        return linear(w, p + "o_proj", joined(attend(rotate(q, c), rotate(k, c), v, 1 / math.sqrt(width))), h)

    x = w("model.embed_tokens.weight", c["vocab_size"], h, scale=0.5)[tokens]
    for i in range(layers):
        p, kind = f"model.layers.{i}.", c["layer_types"][i].split("_")[0]
        y = norm(p + "input_layernorm", x)
        made = (lightning if kind == "linear" else attention)(i, p + "self_attn.", y)
        y = norm(p + "post_attention_layernorm", y * c[f"{kind}_attn_alpha_factor"] + made * c[f"{kind}_attn_beta_factor"])
        made = experts(w, c, p + "block_sparse_moe.", y, ("gate", "experts.{}.w1", "experts.{}.w3", "experts.{}.w2", c["num_local_experts"],
                                                          c["num_experts_per_tok"], c["intermediate_size"], True))
        x = y * c["mlp_alpha_factor"] + made * c["mlp_beta_factor"]
    return norm("model.norm", x) @ w("lm_head.weight", c["vocab_size"], h).T


def gemma4(w, c, tokens):
    """Norms of heads, values too; wide heads in layers that see all; borrowed keys; the token's own input; experts (modeling_gemma4.py)."""
    h, heads, layers, own = c["hidden_size"], c["num_attention_heads"], c["num_hidden_layers"], c["hidden_size_per_layer_input"]
    first = layers - c["num_kv_shared_layers"]
    norm = rms_norms(w, c["rms_norm_eps"])

    def turn(x, slides):
        if slides:
            return rotate(x, {"model_type": "", "rope_theta": c["rope_parameters"]["sliding_attention"]["rope_theta"]})
        said, width = c["rope_parameters"]["full_attention"], x.shape[-1]
        inverse = torch.tensor([said["rope_theta"] ** (-2 * i / width) if i < int(said["partial_rotary_factor"] * width // 2) else 0.0
                                for i in range(width // 2)])
        angle = torch.arange(x.shape[1])[:, None] * inverse
        a, b = x.split(width // 2, -1)
        return torch.cat([a * torch.cos(angle) - b * torch.sin(angle), b * torch.cos(angle) + a * torch.sin(angle)], -1)

    def attention(i, p, x, lent):
        slides = slides_at(c, i)
        width = c["head_dim"] if slides else c["global_head_dim"]
        one = c["attention_k_eq_v"] and not slides
        kv = c["num_global_key_value_heads"] if one else c["num_key_value_heads"]
        q = turn(norm(p + "q_norm", heads_of(linear(w, p + "q_proj", x, heads * width), heads)), slides)
        if i < first:
            k = heads_of(linear(w, p + "k_proj", x, kv * width), kv)
            v = k if one else heads_of(linear(w, p + "v_proj", x, kv * width), kv)
            lent[slides] = turn(norm(p + "k_norm", k), slides), rms_norm(v, 1, c["rms_norm_eps"])
        y = attend(q, *lent[slides], 1.0, window=c["sliding_window"] if slides else None)
        return linear(w, p + "o_proj", joined(y), h)

    def gated(p, x, f):
        return linear(w, p + "down_proj", gelu_tanh(linear(w, p + "gate_proj", x, f)) * linear(w, p + "up_proj", x, f), h)

    def routed(p, x):
        n, k, f = c["num_experts"], c["top_k_experts"], c["moe_intermediate_size"]
        scores = linear(w, p + "router.proj", rms_norm(x, w(p + "router.scale", h, scale=0.2, about=1), c["rms_norm_eps"]) / math.sqrt(h), n)
        best, which = torch.topk(torch.softmax(scores, -1), k, -1)
        shares = torch.zeros_like(scores).scatter(1, which, best / best.sum(-1, keepdim=True)) * w(p + "router.per_expert_scale", n, scale=0.2, about=1)
        y = norm(p + "pre_feedforward_layernorm_2", x)
        return norm(p + "post_feedforward_layernorm_2", fused_experts(w, p, y, shares, f, gelu_tanh))

    x = embedded = w("model.embed_tokens.weight", c["vocab_size"], h, scale=0.5)[tokens] * math.sqrt(h)
    lent = {}
    if own:
        rows = w("model.embed_tokens_per_layer.weight", c["vocab_size_per_layer_input"], layers * own, scale=0.5)[tokens] * math.sqrt(own)
        read = linear(w, "model.per_layer_model_projection", embedded, layers * own).view(-1, layers, own) / math.sqrt(h)
        told = (norm("model.per_layer_projection_norm", read) + rows.view(-1, layers, own)) / math.sqrt(2)
    for i in range(layers):
        p = f"model.layers.{i}."
        x = x + norm(p + "post_attention_layernorm", attention(i, p + "self_attn.", norm(p + "input_layernorm", x), lent))
        y = gated(p + "mlp.", norm(p + "pre_feedforward_layernorm", x), c["intermediate_size"] * (2 if c["use_double_wide_mlp"] and i >= first else 1))
        if c["enable_moe_block"]:
            y = norm(p + "post_feedforward_layernorm_1", y) + routed(p, x)
        x = x + norm(p + "post_feedforward_layernorm", y)
        if own:
            through = gelu_tanh(linear(w, p + "per_layer_input_gate", x, own)) * told[:, i]
            x = x + norm(p + "post_per_layer_input_norm", linear(w, p + "per_layer_projection", through, h))
        x = x * w(p + "layer_scalar", 1, scale=0.2, about=1)
    x = norm("model.norm", x) @ w("model.embed_tokens.weight", c["vocab_size"], h, scale=0.5).T
    cap = c["final_logit_softcapping"]
    return torch.tanh(x / cap) * cap if cap else x


def gemma3n(w, c, tokens):
    """Residual streams of which a layer computes the first; sparse gates; a narrow part beside attention (modeling_gemma3n.py)."""
    h, heads, kv, width, layers = c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"], c["num_hidden_layers"]
    own, n, first = c["hidden_size_per_layer_input"], c["altup_num_inputs"], layers - c["num_kv_shared_layers"]
    f = c["intermediate_size"][0]
    norm = rms_norms(w, c["rms_norm_eps"])

    def attention(i, p, x, lent):
        slides = slides_at(c, i)
        turned = {"model_type": "", "rope_theta": c["rope_local_base_freq"] if slides else c["rope_theta"]}
        q = rotate(norm(p + "q_norm", heads_of(linear(w, p + "q_proj", x, heads * width), heads)), turned)
        if i < first:
            k = rotate(norm(p + "k_norm", heads_of(linear(w, p + "k_proj", x, kv * width), kv)), turned)
            lent[slides] = k, rms_norm(heads_of(linear(w, p + "v_proj", x, kv * width), kv), 1, c["rms_norm_eps"])
        return linear(w, p + "o_proj", joined(attend(q, *lent[slides], 1.0, window=c["sliding_window"] if slides else None)), h)

    def gated(i, p, x):
        gate, share = linear(w, p + "gate_proj", x, f), c["activation_sparsity_pattern"][i]
        if share > 0:
            above = torch.distributions.normal.Normal(0, 1).icdf(torch.tensor(share))
            gate = torch.relu(gate - (gate.mean(-1, keepdim=True) + gate.std(-1, keepdim=True, unbiased=False) * above))
        return linear(w, p + "down_proj", gelu_tanh(gate) * linear(w, p + "up_proj", x, f), h)

    def routes(p, x):
        return torch.tanh(linear(w, p + "modality_router", norm(p + "router_norm", x) / h, n))

    def as_large(x, like):
        return x * like.square().mean(-1, keepdim=True).sqrt() / torch.sqrt(torch.maximum(x.square().mean(-1, keepdim=True), torch.tensor(1e-5)))

    table = w("model.embed_tokens.weight", c["vocab_size"], h, scale=0.5)
    embedded, lent = table[tokens] * math.sqrt(h), {}
    rows = w("model.embed_tokens_per_layer.weight", c["vocab_size_per_layer_input"], layers * own, scale=0.5)[tokens] * math.sqrt(own)
    read = linear(w, "model.per_layer_model_projection", embedded, layers * own).view(-1, layers, own) / math.sqrt(h)
    told = (norm("model.per_layer_projection_norm", read) + rows.view(-1, layers, own)) / math.sqrt(2)
    x = torch.stack([embedded] + [as_large(linear(w, f"model.altup_projections.{i}", embedded, h), embedded) for i in range(n - 1)])
    for i in range(layers):
        p = f"model.layers.{i}."
        shares = linear(w, p + "altup.prediction_coefs", routes(p + "altup.", x[0]), n * n).reshape(-1, n, n).permute(0, 2, 1)
        predicted = torch.matmul(x.permute(1, 2, 0), shares).permute(2, 0, 1) + x
        active = predicted[0]
        normal = norm(p + "input_layernorm", active)
        narrow = linear(w, p + "laurel.linear_right", linear(w, p + "laurel.linear_left", normal, c["laurel_rank"]), h)
        narrow = normal + norm(p + "laurel.post_laurel_norm", narrow)
        made = active + norm(p + "post_attention_layernorm", attention(i, p + "self_attn.", normal, lent))
        made = (made + narrow) / math.sqrt(2)
        made = made + norm(p + "post_feedforward_layernorm", gated(i, p + "mlp.", norm(p + "pre_feedforward_layernorm", made)))
        shares = linear(w, p + "altup.correction_coefs", routes(p + "altup.", made), n) + 1
        x = predicted + (made - predicted[0])[None] * shares.T[:, :, None]
        y = x[0] * w(p + "altup.correct_output_scale", h, scale=0.2, about=1)
        y = gelu_tanh(linear(w, p + "per_layer_input_gate", y, own)) * told[:, i]
        y = norm(p + "post_per_layer_input_norm", linear(w, p + "per_layer_projection", y, h))
        x = torch.cat([x[:1], x[1:] + y])
    x = torch.stack([x[0]] + [as_large(linear(w, f"model.altup_unembed_projections.{i}", x[i + 1], h), x[0]) for i in range(n - 1)]).mean(0)
    x = norm("model.norm", x) @ table.T
    return torch.tanh(x / c["final_logit_softcapping"]) * c["final_logit_softcapping"]


def recurrent_gemma(w, c, tokens):
    """Gated recurrences, place after place, and attention to what is near (modeling_recurrent_gemma.py)."""
    h, heads, kv, wide = c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"], c["lru_width"]
    width, f = h // heads, c["intermediate_size"] // 2

    def norm(name, x):
        return rms_norm(x, 1 + w(name + ".weight", h, scale=0.2), c["rms_norm_eps"])

    def gate(p, u):
        size = wide // heads
        y = torch.einsum("lni,nio->lno", u.view(-1, heads, size), w(p + "_weight", heads, size, size, scale=0.5))
        return torch.sigmoid(y + w(p + "_bias", heads, size, scale=0.3)).reshape(-1, wide)

    def recurrence(p, x):
        u = linear(w, p + "linear_x", x, wide, True)
        kernel = w(p + "conv_1d.weight", wide, 1, c["conv1d_width"], scale=0.4)
        u = torch.nn.functional.conv1d(torch.nn.functional.pad(u.T[None], (c["conv1d_width"] - 1, 0)), kernel,
                                       w(p + "conv_1d.bias", wide, scale=0.3), groups=wide)[0].T
        log = -8 * gate(p + "rg_lru.recurrent_gate", u) * torch.nn.functional.softplus(w(p + "rg_lru.recurrent_param", wide, scale=0.5))
        share = torch.sqrt(1 - torch.exp(2 * log))
        share[0] = 1
        taken, state, told = share * u * gate(p + "rg_lru.input_gate", u), torch.zeros(wide), []
        for place in range(len(u)):
            state = torch.exp(log[place]) * state + taken[place]
            told.append(state)
        return linear(w, p + "linear_out", torch.stack(told) * gelu_tanh(linear(w, p + "linear_y", x, wide, True)), h, True)

    def attention(p, x):
        q, k = (rotate(heads_of(linear(w, p + name, x, n * width), n), c) for name, n in (("q_proj", heads), ("k_proj", kv)))
        y = attend(q, k, heads_of(linear(w, p + "v_proj", x, kv * width), kv), 1 / math.sqrt(width), window=c["attention_window_size"])
        return linear(w, p + "o_proj", joined(y), h, True)

    table = w("model.embed_tokens.weight", c["vocab_size"], h, scale=0.5)
    x = table[tokens] * math.sqrt(h)
    for i in range(c["num_hidden_layers"]):
        p, kind = f"model.layers.{i}.", c["block_types"][i % len(c["block_types"])]
        part = recurrence if kind == "recurrent" else attention
        x = x + part(p + "temporal_block.", norm(p + "temporal_pre_norm", x))
        y = norm(p + "channel_pre_norm", x)
        y = gelu_tanh(linear(w, p + "mlp_block.gate_proj", y, f, True)) * linear(w, p + "mlp_block.up_proj", y, f, True)
        x = x + linear(w, p + "mlp_block.down_proj", y, h, True)
    logits = norm("model.final_norm", x) @ table.T
    return torch.tanh(logits / c["logits_soft_cap"]) * c["logits_soft_cap"]


def falcon_h1(w, c, tokens):
    """Attention beside a scan of Mamba 2 in every layer, and a factor of everything that a matrix makes (modeling_falcon_h1.py)."""
    h, heads, kv, width = c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
    sizes = [c[key] for key in ("mamba_n_heads", "mamba_d_head", "mamba_n_groups", "mamba_d_state", "mamba_d_conv")]
    normed = "" if not c["mamba_rms_norm"] else "before" if c["mamba_norm_before_gate"] else "behind"
    norm = rms_norms(w, c["rms_norm_eps"])

    def attention(p, x):
        q, k, v = (heads_of(linear(w, f"{p}{n}_proj", x, m * width), m) for n, m in (("q", heads), ("k", kv), ("v", kv)))
        return linear(w, p + "o_proj", joined(attend(rotate(q, c), rotate(k * c["key_multiplier"], c), v, 1 / math.sqrt(width))), h)

    x = w("model.embed_tokens.weight", c["vocab_size"], h, scale=0.5)[tokens] * c["embedding_multiplier"]
    for i in range(c["num_hidden_layers"]):
        p, f = f"model.layers.{i}.", c["intermediate_size"]
        y = norm(p + "input_layernorm", x)
        scanned = head_scan(w, p + "mamba.", y * c["ssm_in_multiplier"], sizes, c["rms_norm_eps"], c["mamba_proj_bias"], c["mamba_conv_bias"], True,
                            None, normed, c["ssm_multipliers"])
        x = x + scanned * c["ssm_out_multiplier"] + attention(p + "self_attn.", y * c["attention_in_multiplier"]) * c["attention_out_multiplier"]
        y, p, (opens, down) = norm(p + "pre_ff_layernorm", x), p + "feed_forward.", c["mlp_multipliers"]
        x = x + linear(w, p + "down_proj", silu(linear(w, p + "gate_proj", y, f) * opens) * linear(w, p + "up_proj", y, f), h) * down
    return norm("model.final_layernorm", x) @ w("lm_head.weight", c["vocab_size"], h).T * c["lm_head_multiplier"]


def rwkv(w, c, tokens):
    """Means of what was read that forget, feature by feature; both parts of a layer mix a place with the one before it."""
    h, inner = c["hidden_size"], c["attention_hidden_size"]

    def norm(name, x):
        return layer_norm(x, w(name + ".weight", h, scale=0.2, about=1), w(name + ".bias", h, scale=0.2), 1e-5)

    def mixed(p, name, x):
        share, before = w(f"{p}time_mix_{name}", 1, 1, h, scale=0.3, about=0.5)[0], torch.cat([torch.zeros_like(x[:1]), x[:-1]])
        return x * share + before * (1 - share)

    def attention(p, x):
        k, v = (linear(w, p + name, mixed(p, name, x), inner) for name in ("key", "value"))
        r, kept, bonus = linear(w, p + "receptance", mixed(p, "receptance", x), inner), torch.exp(w(p + "time_decay", inner, scale=0.5)), w(p + "time_first", inner, scale=0.5)
        told = []
        for t in range(len(x)):
            exponents = torch.stack([k[i] - (t - 1 - i) * kept if i < t else k[i] + bonus for i in range(t + 1)])
            told.append((torch.softmax(exponents, 0) * v[:t + 1]).sum(0))
        return linear(w, p + "output", torch.sigmoid(r) * torch.stack(told), h)

    def ffn(p, x):
        hidden = torch.relu(linear(w, p + "key", mixed(p, "key", x), c["intermediate_size"])) ** 2
        return torch.sigmoid(linear(w, p + "receptance", mixed(p, "receptance", x), h)) * linear(w, p + "value", hidden, h)

    x = norm("rwkv.blocks.0.pre_ln", w("rwkv.embeddings.weight", c["vocab_size"], h, scale=0.5)[tokens])
    for i in range(c["num_hidden_layers"]):
        p = f"rwkv.blocks.{i}."
        x = x + attention(p + "attention.", norm(p + "ln1", x))
        x = x + ffn(p + "feed_forward.", norm(p + "ln2", x))
    return norm("rwkv.ln_out", x) @ w("head.weight", c["vocab_size"], h).T


def delta_rule(q, k, v, kept, corrected):
    """What each head's matrix says [place, heads, dv] that forgets, and is corrected by those shares [place, heads]."""
    (_, keys, dk), (_, values, dv) = q.shape, v.shape
    q, k = (y.repeat_interleave(values // keys, 1) for y in (q, k))
    q, k = (y / torch.sqrt((y * y).sum(-1, keepdim=True) + 1e-6) for y in (q, k))
    state, said = torch.zeros(values, dk, dv, dtype=q.dtype), []
    for t in range(q.shape[0]):
        state = state * kept[t][:, None, None]
        wrong = v[t] - (state * k[t][:, :, None]).sum(1)
        state = state + k[t][:, :, None] * (wrong * corrected[t][:, None])[:, None]
        said.append((state * q[t][:, :, None]).sum(1) / math.sqrt(dk))
    return torch.stack(said)


def olmo_hybrid(w, c, tokens):
    """Layers of the gated delta rule with norms before their parts, layers of attention with norms behind theirs."""
    h, f, heads, kv = (c[k] for k in ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads"))
    keys, values, dk, dv = (c["linear_" + k] for k in ("num_key_heads", "num_value_heads", "key_head_dim", "value_head_dim"))
    turns = c["rope_parameters"] is not None
    norm = rms_norms(w, c["rms_norm_eps"])

    def attention(p, x):
        q, k = (norm(f"{p}{n}_norm", linear(w, f"{p}{n}_proj", x, size * h // heads)) for n, size in (("q", heads), ("k", kv)))
        q, k, v = heads_of(q, heads), heads_of(k, kv), heads_of(linear(w, p + "v_proj", x, kv * h // heads), kv)
        q, k = (rotate(y, rotary_of(c, False)) for y in (q, k)) if turns else (q, k)
        return linear(w, p + "o_proj", joined(attend(q, k, v, 1 / math.sqrt(h // heads))), h)

    def read(p, name, x, size):
        taps = w(f"{p}{name}_conv1d.weight", size, 1, c["linear_conv_kernel_dim"], scale=0.5)
        return silu(convolved(taps, linear(w, f"{p}{name}_proj", x, size)))

    def delta(p, x):
        q, k = (read(p, n, x, keys * dk).view(-1, keys, dk) for n in "qk")
        step = torch.nn.functional.softplus(linear(w, p + "a_proj", x, values) + w(p + "dt_bias", values, scale=0.5))
        kept = torch.exp(-torch.exp(w(p + "A_log", values, scale=0.5)) * step)
        most = 2 if c["linear_allow_neg_eigval"] else 1
        said = delta_rule(q, k, read(p, "v", x, values * dv).view(-1, values, dv), kept,
                          most * torch.sigmoid(linear(w, p + "b_proj", x, values)))
        said = rms_norm(said, w(p + "o_norm.weight", dv, scale=0.2, about=1), 1e-5)
        return linear(w, p + "o_proj", (said * silu(linear(w, p + "g_proj", x, values * dv).view(-1, values, dv))).flatten(1), h)

    def ffn(p, x):
        return linear(w, p + "down_proj", silu(linear(w, p + "gate_proj", x, f)) * linear(w, p + "up_proj", x, f), h)

    x = w("model.embed_tokens.weight", c["vocab_size"], h, scale=0.5)[tokens]
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        if c["layer_types"][i] == "linear_attention":
            x = x + delta(p + "linear_attn.", norm(p + "input_layernorm", x))
            x = x + ffn(p + "mlp.", norm(p + "post_attention_layernorm", x))
        else:
            x = x + norm(p + "post_attention_layernorm", attention(p + "self_attn.", x))
            x = x + norm(p + "post_feedforward_layernorm", ffn(p + "mlp.", x))
    return norm("model.norm", x) @ w("lm_head.weight", c["vocab_size"], h).T


def qwen_next(w, c, tokens):
    """The gated delta rule, place by place, beside attention with gates (transformers' modeling_qwen3_next.py)."""
    h, heads, kv, width = c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
    keys, values = c["linear_num_key_heads"], c["linear_num_value_heads"]
    dk, dv, share = c["linear_key_head_dim"], c["linear_value_head_dim"], values // keys
    apart = c["model_type"].startswith("qwen3_5")

    def norm(name, x):
        return rms_norm(x, 1 + w(name + ".weight", x.shape[-1], scale=0.2), c["rms_norm_eps"])

    def attention(p, x):
        q, gate = linear(w, p + "q_proj", x, heads * 2 * width).view(-1, heads, 2 * width).transpose(0, 1).split(width, -1)
        k, v = (heads_of(linear(w, f"{p}{n}_proj", x, kv * width), kv) for n in "kv")
        q, k = (rotate(norm(p + n, y), rotary_of({"partial_rotary_factor": 0.25, **c}, False)) for n, y in (("q_norm", q), ("k_norm", k)))
        y = attend(q, k, v, 1 / math.sqrt(width)) / (1 + torch.exp(-gate))
        return linear(w, p + "o_proj", joined(y), h)

    def projected(p, x):
        """q, k, v of all heads one after the other; z[place, value heads, dv], b and a[place, value heads]."""
        if apart:
            z, b, a = (linear(w, f"{p}in_proj_{n}", x, size) for n, size in (("z", values * dv), ("b", values), ("a", values)))
            return linear(w, p + "in_proj_qkv", x, 2 * keys * dk + values * dv), z.view(-1, values, dv), b, a
        parts = linear(w, p + "in_proj_qkvz", x, 2 * (keys * dk + values * dv)).view(-1, keys, 2 * dk + 2 * share * dv)
        q, k, v, z = parts.split([dk, dk, share * dv, share * dv], -1)
        b, a = linear(w, p + "in_proj_ba", x, 2 * values).view(-1, keys, 2 * share).split(share, -1)
        return torch.cat([part.flatten(1) for part in (q, k, v)], -1), z.reshape(-1, values, dv), b.flatten(1), a.flatten(1)

    def delta(p, x):
        mixed, z, b, a = projected(p, x)
        mixed = silu(convolved(w(p + "conv1d.weight", mixed.shape[1], 1, c["linear_conv_kernel_dim"], scale=0.5), mixed))
        q, k, v = mixed.split([keys * dk, keys * dk, values * dv], -1)
        step = torch.nn.functional.softplus(a + w(p + "dt_bias", values, scale=0.5))
        kept = torch.exp(-torch.exp(w(p + "A_log", values, scale=0.5)) * step)
        said = delta_rule(q.view(-1, keys, dk), k.view(-1, keys, dk), v.view(-1, values, dv), kept, 1 / (1 + torch.exp(-b)))
        said = rms_norm(said, w(p + "norm.weight", dv, scale=0.2, about=1), c["rms_norm_eps"]) * silu(z)
        return linear(w, p + "out_proj", said.flatten(1), h)

    def gated(p, x, f):
        return linear(w, p + "down_proj", silu(linear(w, p + "gate_proj", x, f)) * linear(w, p + "up_proj", x, f), h)

    def of_all(p, x):
        best, which = torch.topk(torch.softmax(linear(w, p + "gate", x, c["num_experts"]), -1), c["num_experts_per_tok"], -1)
        shares = torch.zeros(len(x), c["num_experts"]).scatter(1, which, best / best.sum(-1, keepdim=True))
        return fused_experts(w, p, x, shares, c["moe_intermediate_size"])

    def ffn(p, x):
        if "num_experts" not in c:
            return gated(p, x, c["intermediate_size"])
        made = of_all(p, x) if apart else experts(w, c, p, x, (
            "gate", "experts.{}.gate_proj", "experts.{}.up_proj", "experts.{}.down_proj", c["num_experts"], c["num_experts_per_tok"],
            c["moe_intermediate_size"], c["norm_topk_prob"]))
        shared = gated(p + "shared_expert.", x, c["shared_expert_intermediate_size"])
        return made + shared / (1 + torch.exp(-linear(w, p + "shared_expert_gate", x, 1)))

    table = w("model.embed_tokens.weight", c["vocab_size"], h, scale=0.5)
    x = table[tokens]
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        linear_ones = c["layer_types"][i] == "linear_attention" if "layer_types" in c else (i + 1) % c["full_attention_interval"] != 0
        y = norm(p + "input_layernorm", x)
        x = x + (delta(p + "linear_attn.", y) if linear_ones else attention(p + "self_attn.", y))
        x = x + ffn(p + "mlp.", norm(p + "post_attention_layernorm", x))
    head = table if c["tie_word_embeddings"] else w("lm_head.weight", c["vocab_size"], h)
    return norm("model.norm", x) @ head.T


def plain_norm(w, c, name, x):
    h = x.shape[-1]
    return layer_norm(x, w(name + ".weight", h, scale=0.2, about=1), w(name + ".bias", h, scale=0.2),
                      c["layer_norm_eps"])


def cohere(w, c, tokens):
    """Both branches read one norm without a bias; layers without a window do not turn."""
    h, f, heads, kv = (c[k] for k in ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads"))
    width = h // heads
    norm = layer_norms(w, c["layer_norm_eps"], False)

    table = w("model.embed_tokens.weight", c["vocab_size"], h, scale=0.5)
    x = table[tokens]
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        y = norm(p + "input_layernorm", x)
        q, k, v = (heads_of(linear(w, p + f"self_attn.{n}_proj", y, m * width), m)
                   for n, m in (("q", heads), ("k", kv), ("v", kv)))
        if c.get("use_qk_norm"):
            q, k = (layer_norm(x, w(f"{p}self_attn.{n}_norm.weight", len(x), width, scale=0.2, about=1)[:, None], 0, c["layer_norm_eps"])
                    for n, x in (("q", q), ("k", k)))
        window = c.get("sliding_window") if (i + 1) % c.get("sliding_window_pattern", 1) else None
        if window or c["model_type"] == "cohere":
            q, k = rotate(q, c), rotate(k, c)
        context = joined(attend(q, k, v, 1 / math.sqrt(width), window=window))
        hidden = silu(linear(w, p + "mlp.gate_proj", y, f)) * linear(w, p + "mlp.up_proj", y, f)
        x = x + linear(w, p + "self_attn.o_proj", context, h) + linear(w, p + "mlp.down_proj", hidden, h)
    return norm("model.norm", x) @ table.T * c["logit_scale"]


def phi(w, c, tokens):
    """Both branches read one norm of the layer's input."""
    h, heads, kv = c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"]
    width = h // heads
    x = w("model.embed_tokens.weight", c["vocab_size"], h, scale=0.5)[tokens]
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        y = plain_norm(w, c, p + "input_layernorm", x)
        q, k, v = (heads_of(linear(w, p + f"self_attn.{n}_proj", y, m * width, True), m)
                   for n, m in (("q", heads), ("k", kv), ("v", kv)))
        if c.get("qk_layernorm"):
            q, k = plain_norm(w, c, p + "self_attn.q_layernorm", q), plain_norm(w, c, p + "self_attn.k_layernorm", k)
        context = joined(attend(rotate(q, c), rotate(k, c), v, 1 / math.sqrt(width)))
        hidden = gelu_tanh(linear(w, p + "mlp.fc1", y, c["intermediate_size"], True))
        x = x + linear(w, p + "self_attn.dense", context, h, True) + linear(w, p + "mlp.fc2", hidden, h, True)
    return linear(w, "lm_head", plain_norm(w, c, "model.final_layernorm", x), c["vocab_size"], True)


def gpt_neox(w, c, tokens):
    """Each branch has a norm of its own; query, key and value of a head lie side by side in one matrix."""
    h, heads = c["hidden_size"], c["num_attention_heads"]
    width = h // heads
    turning = {**c, "partial_rotary_factor": c["rotary_pct"], "rope_theta": c["rotary_emb_base"]}
    x = w("gpt_neox.embed_in.weight", c["vocab_size"], h, scale=0.5)[tokens]
    for i in range(c["num_hidden_layers"]):
        p = f"gpt_neox.layers.{i}."
        fused = linear(w, p + "attention.query_key_value", plain_norm(w, c, p + "input_layernorm", x), 3 * h, True)
        q, k, v = fused.view(-1, heads, 3 * width).transpose(0, 1).split(width, -1)
        y = joined(attend(rotate(q, turning), rotate(k, turning), v, 1 / math.sqrt(width)))
        between = x + linear(w, p + "attention.dense", y, h, True)
        seen = plain_norm(w, c, p + "post_attention_layernorm", x if c["use_parallel_residual"] else between)
        hidden = gelu(linear(w, p + "mlp.dense_h_to_4h", seen, c["intermediate_size"], True))
        x = between + linear(w, p + "mlp.dense_4h_to_h", hidden, h, True)
    return linear(w, "embed_out", plain_norm(w, c, "gpt_neox.final_layer_norm", x), c["vocab_size"])


def learned(w, c, name, tokens, first=0):
    """Embeddings and those of positions, whose table has rows before the first; both tables by their names."""
    words, places, h, most = name
    x = w(words + ".weight", c["vocab_size"], h, scale=0.5)
    return x, x[tokens] + w(places + ".weight", most + first, h, scale=0.3)[first:first + len(tokens)]


def opt(w, c, tokens):
    h, heads = c["hidden_size"], c["num_attention_heads"]
    c = {**c, "layer_norm_eps": 1e-5}
    p = "model.decoder."
    if not c["do_layer_norm_before"]:
        return opt_350m(w, c, p, tokens)
    table, x = learned(w, c, (p + "embed_tokens", p + "embed_positions", h, c["max_position_embeddings"]), tokens, 2)
    for i in range(c["num_hidden_layers"]):
        q = f"{p}layers.{i}."
        y = plain_norm(w, c, q + "self_attn_layer_norm", x)
        parts = [heads_of(linear(w, q + f"self_attn.{n}_proj", y, h, True), heads) for n in "qkv"]
        y = joined(attend(*parts, 1 / math.sqrt(h // heads)))
        x = x + linear(w, q + "self_attn.out_proj", y, h, True)
        y = torch.relu(linear(w, q + "fc1", plain_norm(w, c, q + "final_layer_norm", x), c["ffn_dim"], True))
        x = x + linear(w, q + "fc2", y, h, True)
    return plain_norm(w, c, p + "final_layer_norm", x) @ table.T


def xglm(w, c, tokens):
    """Positions as waves, sines before cosines, the longest of 10000 steps a radian; the first token stands at 2."""
    h, heads, p = c["d_model"], c["attention_heads"], "model."
    c = {**c, "layer_norm_eps": 1e-5}
    table = w(p + "embed_tokens.weight", c["vocab_size"], h, scale=0.5)
    angle = (torch.arange(len(tokens)) + 2)[:, None] * 10000 ** (-torch.arange(h // 2) / (h // 2 - 1))
    x = math.sqrt(h) * table[tokens] + torch.cat([torch.sin(angle), torch.cos(angle)], -1)
    for i in range(c["num_layers"]):
        q = f"{p}layers.{i}."
        y = plain_norm(w, c, q + "self_attn_layer_norm", x)
        parts = [heads_of(linear(w, q + f"self_attn.{n}_proj", y, h, True), heads) for n in "qkv"]
        x = x + linear(w, q + "self_attn.out_proj", joined(attend(*parts, 1 / math.sqrt(h // heads))), h, True)
        y = plain_norm(w, c, q + "final_layer_norm", x)
        x = x + linear(w, q + "fc2", gelu(linear(w, q + "fc1", y, c["ffn_dim"], True)), h, True)
    return plain_norm(w, c, p + "layer_norm", x) @ table.T


def biogpt(w, c, tokens):
    """OPT's layers on scaled embeddings; positions are learned, the first in row 2."""
    h, heads, p = c["hidden_size"], c["num_attention_heads"], "biogpt."
    c = {**c, "layer_norm_eps": 1e-5}
    table = w(p + "embed_tokens.weight", c["vocab_size"], h, scale=0.5)
    rows = w(p + "embed_positions.weight", c["max_position_embeddings"] + 2, h, scale=0.3)
    x = math.sqrt(h) * table[tokens] + rows[2:2 + len(tokens)]
    for i in range(c["num_hidden_layers"]):
        q = f"{p}layers.{i}."
        y = plain_norm(w, c, q + "self_attn_layer_norm", x)
        parts = [heads_of(linear(w, q + f"self_attn.{n}_proj", y, h, True), heads) for n in "qkv"]
        x = x + linear(w, q + "self_attn.out_proj", joined(attend(*parts, 1 / math.sqrt(h // heads))), h, True)
        y = plain_norm(w, c, q + "final_layer_norm", x)
        x = x + linear(w, q + "fc2", gelu(linear(w, q + "fc1", y, c["intermediate_size"], True)), h, True)
    return plain_norm(w, c, p + "layer_norm", x) @ table.T


def opt_350m(w, c, p, tokens):
    """Norms behind both parts and none at the end; embeddings of another width than the layers."""
    h, heads, narrow = c["hidden_size"], c["num_attention_heads"], c["word_embed_proj_dim"]
    table = w(p + "embed_tokens.weight", c["vocab_size"], narrow, scale=0.5)
    places = w(p + "embed_positions.weight", c["max_position_embeddings"] + 2, h, scale=0.3)
    x = linear(w, p + "project_in", table[tokens], h) + places[2:2 + len(tokens)]
    for i in range(c["num_hidden_layers"]):
        q = f"{p}layers.{i}."
        parts = [heads_of(linear(w, q + f"self_attn.{n}_proj", x, h, True), heads) for n in "qkv"]
        y = joined(attend(*parts, 1 / math.sqrt(h // heads)))
        x = plain_norm(w, c, q + "self_attn_layer_norm", x + linear(w, q + "self_attn.out_proj", y, h, True))
        y = linear(w, q + "fc2", torch.relu(linear(w, q + "fc1", x, c["ffn_dim"], True)), h, True)
        x = plain_norm(w, c, q + "final_layer_norm", x + y)
    return linear(w, p + "project_out", x, narrow) @ table.T


def gpt_neo(w, c, tokens):
    """Layers by turns see all and a window; nothing divides the scores."""
    h, heads = c["hidden_size"], c["num_heads"]
    c = {**c, "layer_norm_eps": c["layer_norm_epsilon"]}
    t = "transformer."
    table, x = learned(w, c, (t + "wte", t + "wpe", h, c["max_position_embeddings"]), tokens)
    kinds = [kind for group, times in c["attention_types"] for _ in range(times) for kind in group]
    for i in range(c["num_layers"]):
        p = f"{t}h.{i}."
        y = plain_norm(w, c, p + "ln_1", x)
        parts = [heads_of(linear(w, p + f"attn.attention.{n}_proj", y, h), heads) for n in "qkv"]
        y = joined(attend(*parts, 1.0, window=c["window_size"] if kinds[i] == "local" else None))
        x = x + linear(w, p + "attn.attention.out_proj", y, h, True)
        y = gelu_tanh(linear(w, p + "mlp.c_fc", plain_norm(w, c, p + "ln_2", x), 4 * h, True))
        x = x + linear(w, p + "mlp.c_proj", y, h, True)
    return plain_norm(w, c, t + "ln_f", x) @ table.T


def gptj(w, c, tokens):
    h, heads, t = c["n_embd"], c["n_head"], "transformer."
    c = {**c, "layer_norm_eps": c["layer_norm_epsilon"], "partial_rotary_factor": c["rotary_dim"] / (h // heads)}
    x = w(t + "wte.weight", c["vocab_size"], h, scale=0.5)[tokens]
    for i in range(c["n_layer"]):
        p = f"{t}h.{i}."
        y = plain_norm(w, c, p + "ln_1", x)
        if c["model_type"] == "codegen":  # four parts, each with its queries, values and keys
            parts = linear(w, p + "attn.qkv_proj", y, 3 * h).view(len(tokens), 4, 3, -1)
            q, v, k = (heads_of(parts[:, :, j].flatten(1), heads) for j in range(3))
        else:
            q, k, v = (heads_of(linear(w, p + f"attn.{n}_proj", y, h), heads) for n in "qkv")
        context = joined(attend(rotate(q, c), rotate(k, c), v, 1 / math.sqrt(h // heads)))
        hidden = gelu_tanh(linear(w, p + "mlp.fc_in", y, 4 * h, True))
        x = x + linear(w, p + "attn.out_proj", context, h) + linear(w, p + "mlp.fc_out", hidden, h, True)
    return linear(w, "lm_head", plain_norm(w, c, t + "ln_f", x), c["vocab_size"], True)


def gpt_bigcode(w, c, tokens):
    """All heads of queries share one key and value, which lie behind them; or each head has its three side by side."""
    h, heads, t = c["n_embd"], c["n_head"], "transformer."
    c, width = {**c, "layer_norm_eps": c["layer_norm_epsilon"]}, h // heads
    table, x = learned(w, c, (t + "wte", t + "wpe", h, c["n_positions"]), tokens)
    for i in range(c["n_layer"]):
        p = f"{t}h.{i}."
        y = plain_norm(w, c, p + "ln_1", x)
        if c["multi_query"]:
            q, k, v = linear(w, p + "attn.c_attn", y, h + 2 * width, True).split([h, width, width], -1)
            parts = heads_of(q, heads), k[None], v[None]
        else:
            fused = linear(w, p + "attn.c_attn", y, 3 * h, True)
            parts = fused.view(-1, heads, 3 * width).transpose(0, 1).split(width, -1)
        x = x + linear(w, p + "attn.c_proj", joined(attend(*parts, 1 / math.sqrt(width))), h, True)
        y = gelu_tanh(linear(w, p + "mlp.c_fc", plain_norm(w, c, p + "ln_2", x), c["n_inner"], True))
        x = x + linear(w, p + "mlp.c_proj", y, h, True)
    return plain_norm(w, c, t + "ln_f", x) @ table.T


def falcon(w, c, tokens):
    """Groups of queries, each with its key and value, in one matrix; or all queries, one key and one value."""
    h, heads, t = c["hidden_size"], c["num_attention_heads"], "transformer."
    c, width = {**c, "layer_norm_eps": c["layer_norm_epsilon"]}, h // heads
    new, bias = c["new_decoder_architecture"], c["bias"]
    groups = c["num_kv_heads"] if new else 1 if c["multi_query"] else heads
    table = w(t + "word_embeddings.weight", c["vocab_size"], h, scale=0.5)
    x = table[tokens]
    for i in range(c["num_hidden_layers"]):
        p = f"{t}h.{i}."
        two = new and c.get("num_ln_in_parallel_attn", 2) == 2
        y = plain_norm(w, c, p + ("ln_attn" if two else "input_layernorm"), x)
        fused = linear(w, p + "self_attention.query_key_value", y, h + 2 * groups * width, bias)
        fused = fused.view(len(tokens), groups, heads // groups + 2, width)
        q = fused[:, :, :-2].reshape(len(tokens), heads, width).transpose(0, 1)
        k, v = fused[:, :, -2].transpose(0, 1), fused[:, :, -1].transpose(0, 1)
        scale = 1 / math.sqrt(width)
        if c["alibi"]:
            context = joined(attend(q, k, v, scale, bias=coarse_alibi(heads, len(tokens)) * scale))
        else:
            context = joined(attend(rotate(q, c), rotate(k, c), v, scale))
        context = linear(w, p + "self_attention.dense", context, h, bias)
        if two:
            y = plain_norm(w, c, p + "ln_mlp", x)
        elif not c["parallel_attn"]:
            y = plain_norm(w, c, p + "post_attention_layernorm", x + context)
        hidden = gelu(linear(w, p + "mlp.dense_h_to_4h", y, 4 * h, bias))
        x = x + context + linear(w, p + "mlp.dense_4h_to_h", hidden, h, bias)
    return plain_norm(w, c, t + "ln_f", x) @ table.T


def slopes_of(heads):
    """Of Press et al.'s code."""
    def slopes(n):
        first = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [first ** (i + 1) for i in range(n)]
    power = 2 ** math.floor(math.log2(heads))
    return torch.tensor(slopes(power) + slopes(2 * power)[0::2][:heads - power])


def alibi(heads, length):
    """Slopes times minus the distance."""
    place = torch.arange(length)
    return slopes_of(heads)[:, None, None] * (place[None, :] - place[:, None])


def coarse_alibi(heads, length):
    """Slopes times the position of memory, both and their product in bfloat16."""
    place = torch.arange(length).to(torch.bfloat16)
    return (slopes_of(heads).to(torch.bfloat16)[:, None, None] * place).to(torch.float64)


def bloom(w, c, tokens):
    h, heads = c["hidden_size"], c["n_head"]
    c, width = {**c, "layer_norm_eps": c["layer_norm_epsilon"]}, h // heads
    table = w("word_embeddings.weight", c["vocab_size"], h, scale=0.5)
    x = plain_norm(w, c, "word_embeddings_layernorm", table[tokens])
    for i in range(c["n_layer"]):
        p = f"h.{i}."
        fused = linear(w, p + "self_attention.query_key_value", plain_norm(w, c, p + "input_layernorm", x), 3 * h, True)
        parts = fused.view(-1, heads, 3 * width).transpose(0, 1).split(width, -1)
        y = joined(attend(*parts, 1 / math.sqrt(width), bias=alibi(heads, len(tokens))))
        x = x + linear(w, p + "self_attention.dense", y, h, True)
        y = plain_norm(w, c, p + "post_attention_layernorm", x)
        x = x + linear(w, p + "mlp.dense_4h_to_h", gelu_tanh(linear(w, p + "mlp.dense_h_to_4h", y, 4 * h, True)), h, True)
    return plain_norm(w, c, "ln_f", x) @ table.T


def nanochat(w, c, tokens):
    """Norms without scales, of embeddings and turned heads, too, which turn the other way (modeling_nanochat.py)."""
    h, heads, kv, most = c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"], c["final_logit_softcapping"]

    def norm(x):
        return rms_norm(x, 1, c["rms_norm_eps"])

    def turned(x):
        b, a = rotate(torch.cat(x.chunk(2, -1)[::-1], -1), c).chunk(2, -1)
        return norm(torch.cat([a, b], -1))

    x = norm(w("model.embed_tokens.weight", c["vocab_size"], h, scale=0.5)[tokens])
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        y = norm(x)
        q, k, v = (heads_of(linear(w, f"{p}self_attn.{n}_proj", y, m * h // heads), m) for n, m in (("q", heads), ("k", kv), ("v", kv)))
        x = x + linear(w, p + "self_attn.o_proj", joined(attend(turned(q), turned(k), v, 1 / math.sqrt(h // heads))), h)
        x = x + linear(w, p + "mlp.fc2", linear(w, p + "mlp.fc1", norm(x), c["intermediate_size"]).clamp(min=0) ** 2, h)
    return most * torch.tanh(linear(w, "lm_head", norm(x), c["vocab_size"]) / most)


def dbrx(w, c, tokens):
    """No biases; q, k and v of one matrix within a limit; the matrices of all experts below one another (modeling_dbrx.py)."""
    h, heads, t, ffn = c["d_model"], c["n_heads"], "transformer.", c["ffn_config"]
    kv, most, width = c["attn_config"]["kv_n_heads"], c["attn_config"]["clip_qkv"], c["d_model"] // c["n_heads"]
    turn = {**c, "rope_theta": c["attn_config"]["rope_theta"]}
    count, k, f = ffn["moe_num_experts"], ffn["moe_top_k"], ffn["ffn_hidden_size"]
    norm = layer_norms(w, 1e-5, False)

    def experts_of(p, x):
        best, which = torch.topk(torch.softmax(linear(w, p + "router.layer", x, count), -1), k, -1)
        best = best / best.sum(-1, keepdim=True) if ffn.get("moe_normalize_expert_weights", 1) else best
        gate, up, down = (w(f"{p}experts.mlp.{n}", count * f, h).view(count, f, h) for n in ("w1", "v1", "w2"))
        return sum((best * (which == e)).sum(-1, keepdim=True) * ((silu(x @ gate[e].T) * (x @ up[e].T)) @ down[e]) for e in range(count))

    x = w(t + "wte.weight", c["vocab_size"], h, scale=0.5)[tokens]
    for i in range(c["n_layers"]):
        p = f"{t}blocks.{i}."
        a = p + "norm_attn_norm."
        fused = linear(w, a + "attn.Wqkv", norm(a + "norm_1", x), (heads + 2 * kv) * width).clamp(-most, most)
        q, key, v = (heads_of(part, n) for part, n in zip(fused.split([heads * width, kv * width, kv * width], -1), (heads, kv, kv)))
        x = x + linear(w, a + "attn.out_proj", joined(attend(rotate(q, turn), rotate(key, turn), v, 1 / math.sqrt(width))), h)
        x = x + experts_of(p + "ffn.", norm(a + "norm_2", x))
    return norm(t + "norm_f", x) @ w("lm_head.weight", c["vocab_size"], h).T


def mpt(w, c, tokens):
    """No biases anywhere."""
    h, heads, t = c["d_model"], c["n_heads"], "transformer."
    most = c["attn_config"]["clip_qkv"]
    norm = layer_norms(w, 1e-5, False)

    table = w(t + "wte.weight", c["vocab_size"], h, scale=0.5)
    x = table[tokens]
    for i in range(c["n_layers"]):
        p = f"{t}blocks.{i}."
        fused = linear(w, p + "attn.Wqkv", norm(p + "norm_1", x), 3 * h)
        parts = (fused.clamp(-most, most) if most else fused).split(h, -1)
        y = attend(*(heads_of(part, heads) for part in parts), 1 / math.sqrt(h // heads), bias=alibi(heads, len(tokens)))
        x = x + linear(w, p + "attn.out_proj", joined(y), h)
        x = x + linear(w, p + "ffn.down_proj", gelu(linear(w, p + "ffn.up_proj", norm(p + "norm_2", x), 4 * h)), h)
    return norm(t + "norm_f", x) @ table.T


def tells(c, what):
    """Whether the model has the head that a class of transformers ends with."""
    return any(name.endswith(what) for name in c.get("architectures", []))


# Kin of BERT: where their tensors are, whether positions count from behind the padding's (number 1), where norms stand that a layer
# begins its parts with, and the last one; whose head they have.
BERT_KIN = {
    "bert": ("bert.", False, None, "bert"), "ernie": ("ernie.", False, None, "bert"), "electra": ("electra.", False, None, "electra"),
    "roberta": ("roberta.", True, None, "roberta"), "xlm-roberta": ("roberta.", True, None, "roberta"),
    "camembert": ("roberta.", True, None, "roberta"), "data2vec-text": ("data2vec_text.", True, None, "roberta"),
    "mpnet": ("mpnet.", True, None, "roberta"),
    "megatron-bert": ("bert.", False, ("attention.ln", "ln", "encoder.ln"), "bert"),
    "roberta-prelayernorm": ("roberta_prelayernorm.", True, ("attention.LayerNorm", "intermediate.LayerNorm", "LayerNorm"), "roberta"),
    "xlm-roberta-xl": ("roberta.", True, ("attention.self_attn_layer_norm", "LayerNorm", "encoder.LayerNorm"), "roberta"),
}


def bert_head(w, c, x, p, table):
    """Scores of tokens by the embedding, behind the layer of the type where there is one, or a text's class."""
    h, narrow = c["hidden_size"], table.shape[1]
    kind = BERT_KIN[c["model_type"]][3]
    classes = len(c.get("id2label", "..."[:2]))
    if tells(c, "ForTokenClassification"):
        return linear(w, "classifier", x, classes, True)
    if tells(c, "ForQuestionAnswering"):
        return linear(w, "qa_outputs", x, 2, True).T
    if tells(c, "ForSequenceClassification"):
        if kind == "bert":
            first = torch.tanh(linear(w, p + "pooler.dense", x[:1], h, True))
            return linear(w, "classifier", first, classes, True)
        first = linear(w, "classifier.dense", x[:1], h, True)
        first = gelu(first) if kind == "electra" else torch.tanh(first)
        return linear(w, "classifier.out_proj", first, classes, True)
    if tells(c, "ForMaskedLM"):
        dense, norm, scores = {
            "bert": ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions"),
            "electra": ("generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head"),
            "roberta": ("lm_head.dense", "lm_head.layer_norm", "lm_head")}[kind]
        x = plain_norm(w, c, norm, gelu(linear(w, dense, x, narrow, True)))
        return x @ table.T + w(scores + ".bias", c["vocab_size"], scale=0.3)
    if kind != "electra":
        linear(w, p + "pooler.dense", x[:1], h, True)
    return (x @ w(p + "embeddings_project.weight", h, narrow) if narrow != h else x) @ table.T


def bert_embeddings(w, c, p, tokens, first, width):
    """Tokens, positions from number `first` on and the first segment, and their table."""
    e = p + "embeddings."
    table = w(e + "word_embeddings.weight", c["vocab_size"], width, scale=0.5)
    x = table[tokens] + w(e + "position_embeddings.weight", c["max_position_embeddings"], width, scale=0.3)[first:first + len(tokens)]
    if c["model_type"] != "mpnet":
        x = x + w(e + "token_type_embeddings.weight", c["type_vocab_size"], width, scale=0.3)[0]
    return x, table


def bert(w, c, tokens):
    """The encoder, and what it tells."""
    h, n, kind = c["hidden_size"], c["num_attention_heads"], c["model_type"]
    p, counts_on, before, _ = BERT_KIN[kind]
    narrow, attn = c.get("embedding_size", h), "attention.self."
    parts, behind = ("query", "key", "value", "attention.output.dense"), "attention.output.LayerNorm"
    if kind == "roberta" and "architectures" not in c:
        p = ""

    def norm(name, x):
        return plain_norm(w, c, name, x)

    x, table = bert_embeddings(w, c, p, tokens, (2 if kind == "mpnet" else c["pad_token_id"] + 1) if counts_on else 0, narrow)
    x = x if kind in ("megatron-bert", "xlm-roberta-xl") else norm(p + "embeddings.LayerNorm", x)
    if narrow != h:
        x = linear(w, p + "embeddings_project", x, h, True)
    bias = None
    if kind == "mpnet":
        attn, parts, behind = "attention.attn.", ("q", "k", "v", "attention.attn.o"), "attention.LayerNorm"
        place = torch.arange(len(tokens))
        buckets = t5_bucket(place[None, :] - place[:, None], True, c["relative_attention_num_buckets"], 128)
        bias = w(p + "encoder.relative_attention_bias.weight", c["relative_attention_num_buckets"], n)[buckets].permute(2, 0, 1)
    for i in range(c["num_hidden_layers"]):
        q = f"{p}encoder.layer.{i}."
        y = norm(q + before[0], x) if before else x
        seen = [heads_of(linear(w, q + attn + name, y, h, True), n) for name in parts[:3]]
        y = joined(attend(*seen, 1 / math.sqrt(h // n), causal=False, bias=bias))
        x = x + linear(w, q + parts[3], y, h, True)
        x = x if before else norm(q + behind, x)
        y = norm(q + before[1], x) if before else x
        x = x + linear(w, q + "output.dense", gelu(linear(w, q + "intermediate.dense", y, c["intermediate_size"], True)), h, True)
        x = x if before else norm(q + "output.LayerNorm", x)
    return bert_head(w, c, norm(p + before[2], x) if before else x, p, table)


def albert(w, c, tokens):
    """A layer that is gone through again and again, between a narrow embedding and what it tells."""
    h, n, narrow, a = c["hidden_size"], c["num_attention_heads"], c["embedding_size"], "albert."
    x, table = bert_embeddings(w, c, a, tokens, 0, narrow)
    x = linear(w, a + "encoder.embedding_hidden_mapping_in", plain_norm(w, c, a + "embeddings.LayerNorm", x), h, True)
    p = a + "encoder.albert_layer_groups.0.albert_layers.0."
    for _ in range(c["num_hidden_layers"]):
        parts = [heads_of(linear(w, p + "attention." + name, x, h, True), n) for name in ("query", "key", "value")]
        y = linear(w, p + "attention.dense", joined(attend(*parts, 1 / math.sqrt(h // n), causal=False)), h, True)
        x = plain_norm(w, c, p + "attention.LayerNorm", x + y)
        y = linear(w, p + "ffn_output", gelu_tanh(linear(w, p + "ffn", x, c["intermediate_size"], True)), h, True)
        x = plain_norm(w, c, p + "full_layer_layer_norm", x + y)
    if tells(c, "ForSequenceClassification"):
        return linear(w, "classifier", torch.tanh(linear(w, a + "pooler", x[:1], h, True)), len(c["id2label"]), True)
    if tells(c, "ForMaskedLM"):
        x = plain_norm(w, c, "predictions.LayerNorm", gelu_tanh(linear(w, "predictions.dense", x, narrow, True)))
        return x @ table.T + w("predictions.bias", c["vocab_size"], scale=0.3)
    linear(w, a + "pooler", x[:1], h, True)
    return x @ w(a + "encoder.embedding_hidden_mapping_in.weight", h, narrow) @ table.T


def distance_rows(c, length):
    """The row of a query less a key in the table of distances, as DeBERTa has it."""
    place, buckets, most = torch.arange(length), c["position_buckets"], c["max_relative_positions"]
    behind = place[:, None] - place[None, :]
    if buckets <= 0:
        return (behind + most).clamp(0, 2 * most - 1)
    middle = buckets // 2
    far = torch.ceil(torch.log(behind.abs().clamp(min=middle) / middle) / math.log((most - 1) / middle) * (middle - 1) - 1e-6) + middle
    told = torch.where(behind.abs() <= middle, behind, (far * behind.sign()).long())
    return (told + buckets).clamp(0, 2 * buckets - 1)


def deberta_v2(w, c, tokens):
    """Attention by tokens, by a query and the distance, and by a key and the distance."""
    h, n, p = c["hidden_size"], c["num_attention_heads"], "deberta."
    table = w(p + "embeddings.word_embeddings.weight", c["vocab_size"], h, scale=0.5)
    x = table[tokens]
    if c["position_biased_input"]:
        x = x + w(p + "embeddings.position_embeddings.weight", c["max_position_embeddings"], h, scale=0.3)[:len(tokens)]
    if c["type_vocab_size"]:
        x = x + w(p + "embeddings.token_type_embeddings.weight", c["type_vocab_size"], h, scale=0.3)[0]
    x = plain_norm(w, c, p + "embeddings.LayerNorm", x)
    if c["model_type"] == "deberta":
        c = {"position_buckets": -1, "norm_rel_ebd": "none", "share_att_key": False, **c}
    side = c["position_buckets"] if c["position_buckets"] > 0 else c["max_relative_positions"]
    rows = w(p + "encoder.rel_embeddings.weight", 2 * side, h, scale=0.5) if c["relative_attention"] else None
    if c["norm_rel_ebd"] == "layer_norm":
        rows = plain_norm(w, c, p + "encoder.LayerNorm", rows)
    which = distance_rows(c, len(tokens))
    terms = c["pos_att_type"].split("|") if isinstance(c["pos_att_type"], str) else c["pos_att_type"]
    terms = terms if c["relative_attention"] else []
    first = c["model_type"] == "deberta"
    key, query = ("pos_proj", "pos_q_proj") if first else ("pos_key_proj", "pos_query_proj")
    scale = 1 / math.sqrt(h // n * (1 + len(terms)))
    for i in range(c["num_hidden_layers"]):
        l = f"{p}encoder.layer.{i}."
        a = l + "attention.self."
        if first:
            q, k, v = linear(w, a + "in_proj", x, 3 * h).view(-1, n, 3 * h // n).transpose(0, 1).chunk(3, -1)
            q, v = (y + w(f"{a}{name}_bias", h, scale=0.3).view(n, 1, -1) for name, y in (("q", q), ("v", v)))
        else:
            q, k, v = (heads_of(linear(w, a + name, x, h, True), n) for name in ("query_proj", "key_proj", "value_proj"))
        bias = torch.zeros(1)
        if "c2p" in terms:
            of_rows = heads_of(linear(w, a + ("key_proj" if c["share_att_key"] else key), rows, h, not first), n)
            bias = bias + (q @ of_rows.mT).gather(2, which.expand(n, -1, -1))
        if "p2c" in terms:
            of_rows = heads_of(linear(w, a + ("query_proj" if c["share_att_key"] else query), rows, h, True), n)
            bias = bias + (k @ of_rows.mT).gather(2, which.T.expand(n, -1, -1)).mT
        y = joined(attend(q, k, v, scale, causal=False, bias=bias * scale))
        x = plain_norm(w, c, l + "attention.output.LayerNorm", x + linear(w, l + "attention.output.dense", y, h, True))
        y = linear(w, l + "output.dense", gelu(linear(w, l + "intermediate.dense", x, c["intermediate_size"], True)), h, True)
        x = plain_norm(w, c, l + "output.LayerNorm", x + y)
    if tells(c, "ForSequenceClassification"):
        return linear(w, "classifier", gelu(linear(w, "pooler.dense", x[:1], h, True)), len(c["id2label"]), True)
    if tells(c, "ForMaskedLM"):
        x = plain_norm(w, c, "cls.predictions.transform.LayerNorm", gelu(linear(w, "cls.predictions.transform.dense", x, h, True)))
        return x @ table.T + w("cls.predictions.bias", c["vocab_size"], scale=0.3)
    return x @ table.T


def eurobert(w, c, tokens):
    """Llama that sees both sides, and has a head or reads its embedding backward."""
    h, n, kv = c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"]
    width, f = h // n, c["intermediate_size"]
    norm = rms_norms(w, c["rms_norm_eps"])

    table = w("model.embed_tokens.weight", c["vocab_size"], h, scale=0.5)
    x = table[tokens]
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        y, a = norm(p + "input_layernorm", x), p + "self_attn."
        q, k, v = (heads_of(linear(w, f"{a}{name}_proj", y, m * width), m) for name, m in (("q", n), ("k", kv), ("v", kv)))
        y = joined(attend(rotate(q, c), rotate(k, c), v, 1 / math.sqrt(width), causal=False))
        x = x + linear(w, a + "o_proj", y, h)
        y = norm(p + "post_attention_layernorm", x)
        x = x + linear(w, p + "mlp.down_proj", silu(linear(w, p + "mlp.gate_proj", y, f)) * linear(w, p + "mlp.up_proj", y, f), h)
    x = norm("model.norm", x)
    return linear(w, "lm_head", x, c["vocab_size"]) if tells(c, "ForMaskedLM") else x @ table.T


def nomic_bert(w, c, tokens):
    h, n, f, p = c["hidden_size"], c["num_attention_heads"], c["intermediate_size"], "nomic_bert."
    table = w(p + "embeddings.word_embeddings.weight", c["vocab_size"], h, scale=0.5)
    x = table[tokens] + w(p + "embeddings.token_type_embeddings.weight", c["type_vocab_size"], h, scale=0.3)[0]
    x = plain_norm(w, c, p + "emb_ln", x)
    for i in range(c["num_hidden_layers"]):
        q = f"{p}encoder.layers.{i}."
        parts = [heads_of(part, n) for part in linear(w, q + "attn.Wqkv", x, 3 * h).split(h, -1)]
        y = joined(attend(rotate(parts[0], c), rotate(parts[1], c), parts[2], 1 / math.sqrt(h // n), causal=False))
        x = plain_norm(w, c, q + "norm1", x + linear(w, q + "attn.out_proj", y, h))
        y = linear(w, q + "mlp.fc11", x, f) * silu(linear(w, q + "mlp.fc12", x, f))
        x = plain_norm(w, c, q + "norm2", x + linear(w, q + "mlp.fc2", y, h))
    if not tells(c, "ForMaskedLM"):
        return x @ table.T
    x = silu(linear(w, "cls.predictions.transform.dense", x, h, True))
    return plain_norm(w, c, "cls.predictions.transform.layer_norm", x) @ table.T + w("cls.predictions.bias", c["vocab_size"], scale=0.3)


def esm(w, c, tokens):
    """Of proteins: embeddings scaled by the share of tokens that training showed."""
    h, n, p = c["hidden_size"], c["num_attention_heads"], "esm."
    turns = c["position_embedding_type"] == "rotary"
    table = w(p + "embeddings.word_embeddings.weight", c["vocab_size"], h, scale=0.5)
    x = table[tokens] * (1 - 0.15 * 0.8 if c["token_dropout"] else 1)
    if not turns:
        x = x + w(p + "embeddings.position_embeddings.weight", c["max_position_embeddings"], h)[c["pad_token_id"] + 1:][:len(tokens)]
    if c.get("emb_layer_norm_before"):
        x = plain_norm(w, c, p + "embeddings.layer_norm", x)
    for i in range(c["num_hidden_layers"]):
        q = f"{p}encoder.layer.{i}."
        y = plain_norm(w, c, q + "attention.LayerNorm", x)
        parts = [heads_of(linear(w, q + "attention.self." + name, y, h, True), n) for name in ("query", "key", "value")]
        if turns:
            parts[:2] = (rotate(part, c) for part in parts[:2])
        y = joined(attend(*parts, 1 / math.sqrt(h // n), causal=False))
        x = x + linear(w, q + "attention.output.dense", y, h, True)
        y = gelu(linear(w, q + "intermediate.dense", plain_norm(w, c, q + "LayerNorm", x), c["intermediate_size"], True))
        x = x + linear(w, q + "output.dense", y, h, True)
    x = plain_norm(w, c, p + "encoder.emb_layer_norm_after", x)
    if not tells(c, "ForMaskedLM"):
        return x @ table.T
    x = plain_norm(w, c, "lm_head.layer_norm", gelu(linear(w, "lm_head.dense", x, h, True)))
    return x @ table.T + w("lm_head.bias", c["vocab_size"], scale=0.3)


def distilbert(w, c, tokens):
    h, n, e = c["dim"], c["n_heads"], "distilbert.embeddings."
    c = {**c, "layer_norm_eps": 1e-12}
    table, x = learned(w, c, (e + "word_embeddings", e + "position_embeddings", h, c["max_position_embeddings"]), tokens)
    x = plain_norm(w, c, e + "LayerNorm", x)
    for i in range(c["n_layers"]):
        p = f"distilbert.transformer.layer.{i}."
        parts = [heads_of(linear(w, p + f"attention.{name}_lin", x, h, True), n) for name in "qkv"]
        y = joined(attend(*parts, 1 / math.sqrt(h // n), causal=False))
        x = plain_norm(w, c, p + "sa_layer_norm", x + linear(w, p + "attention.out_lin", y, h, True))
        y = linear(w, p + "ffn.lin2", gelu(linear(w, p + "ffn.lin1", x, c["hidden_dim"], True)), h, True)
        x = plain_norm(w, c, p + "output_layer_norm", x + y)
    if tells(c, "ForSequenceClassification"):
        first = linear(w, "pre_classifier", x[:1], h, True).clamp(min=0)
        return linear(w, "classifier", first, len(c["id2label"]), True)
    if tells(c, "ForMaskedLM"):
        x = plain_norm(w, c, "vocab_layer_norm", gelu(linear(w, "vocab_transform", x, h, True)))
        return x @ table.T + w("vocab_projector.bias", c["vocab_size"], scale=0.3)
    return x @ table.T


def t5_bucket(relative, both_ways, buckets, most):
    """As transformers has it: relative is memory less query."""
    start = torch.zeros_like(relative)
    if both_ways:
        buckets //= 2
        start = (relative > 0).long() * buckets
        n = relative.abs()
    else:
        n = (-relative).clamp(min=0)
    exact = buckets // 2
    large = exact + (torch.log(n.float() / exact) / math.log(most / exact)
                     * (buckets - exact)).clamp(min=0).long()
    large = large.clamp(max=buckets - 1)
    return start + torch.where(n < exact, n, large)


def t5(w, c, tokens, read=None):
    """What is read is what is said where nothing else is given. Switch Transformers are T5 with experts in some
    layers: the best one alone, times its share, and here everybody finds a place."""
    h, n, width, f = c["d_model"], c["num_heads"], c["d_kv"], c["d_ff"]
    table = w("shared.weight", c["vocab_size"], h, scale=0.5)
    gated = c["feed_forward_proj"] == "gated-gelu"
    switch = c["model_type"] == "switch_transformers"
    norm = rms_norms(w, c["layer_norm_epsilon"])

    def attention(p, x, source, bias, causal):
        q = heads_of(linear(w, p + "q", x, n * width), n)
        k = heads_of(linear(w, p + "k", source, n * width), n)
        v = heads_of(linear(w, p + "v", source, n * width), n)
        return linear(w, p + "o", joined(attend(q, k, v, 1.0, causal=causal, bias=bias)), h)

    def experts_of(p, x):
        shares = torch.softmax(linear(w, p + "router.classifier", x, c["num_experts"]), -1)
        best, which = shares.max(-1, keepdim=True)
        return sum((which == e) * best * product(f"{p}experts.expert_{e}.", x) for e in range(c["num_experts"]))

    def product(p, x):
        if gated:
            y = gelu_tanh(linear(w, p + "wi_0", x, f)) * linear(w, p + "wi_1", x, f)
        else:
            y = torch.relu(linear(w, p + "wi", x, f))
        return linear(w, p + "wo", y, h)

    def ffn(p, x, sparse):
        if not switch:
            return product(p + "DenseReluDense.", x)
        return experts_of(p + "mlp.", x) if sparse else product(p + "mlp.", x)

    def sparse_step(name, layers):
        count = c.get(f"num_sparse_{name}_layers", 0)
        return layers // count if count else layers

    def stack(name, layers, text, source):
        x, place = table[text], torch.arange(len(text))
        which = t5_bucket(place[None, :] - place[:, None], source is None,
                          c["relative_attention_num_buckets"], c["relative_attention_max_distance"])
        for i in range(layers):
            p = f"{name}.block.{i}.layer."
            if i == 0 or c["model_type"] == "umt5":
                bias = w(p + "0.SelfAttention.relative_attention_bias.weight",
                         c["relative_attention_num_buckets"], n, scale=0.7)[which].permute(2, 0, 1)
            y = norm(p + "0.layer_norm", x)
            x = x + attention(p + "0.SelfAttention.", y, y, bias, source is not None)
            if source is not None:
                y = norm(p + "1.layer_norm", x)
                x = x + attention(p + "1.EncDecAttention.", y, source, None, False)
            last = 1 if source is None else 2
            step = sparse_step(name, layers)
            x = x + ffn(p + f"{last}.", norm(p + f"{last}.layer_norm", x), step == 1 or i % step == 1)
        return norm(name + ".final_layer_norm", x)

    made = stack("encoder", c["num_layers"], tokens if read is None else read, None)
    x = stack("decoder", c["num_decoder_layers"], tokens, made)
    if c.get("scale_decoder_outputs", c["tie_word_embeddings"] and c["model_type"] != "mt5"):
        return x / math.sqrt(h) @ table.T
    if c.get("head is the table"):
        return x @ table.T
    return x @ w("lm_head.weight", c["vocab_size"], h).T


def vit(w, c, image):
    """Patches, a class token before them, in DeiT behind it its teacher's, pre-norm layers; the classifier reads the first."""
    h, n, size = c["hidden_size"], c["num_attention_heads"], c["patch_size"]
    kind = c["model_type"]
    p = kind + ".embeddings."

    def norm(name, x):
        return layer_norm(x, w(name + ".weight", h, scale=0.2, about=1),
                          w(name + ".bias", h, scale=0.2), c["layer_norm_eps"])

    kernel = w(p + "patch_embeddings.projection.weight", h, c["num_channels"], size, size, scale=0.2)
    x = torch.nn.functional.conv2d(image[None], kernel, w(p + "patch_embeddings.projection.bias", h,
                                                          scale=0.3), stride=size)
    x = x[0].reshape(h, -1).T
    tokens = ["cls_token", "distillation_token"] if kind == "deit" else [] if kind == "ijepa" else ["cls_token"]
    x = torch.cat([*(w(p + token, 1, 1, h, scale=0.5)[0] for token in tokens), x])
    x = x + w(p + "position_embeddings", 1, x.shape[0], h, scale=0.3)[0]
    for i in range(c["num_hidden_layers"]):
        q = f"{kind}.encoder.layer.{i}."
        y = norm(q + "layernorm_before", x)
        parts = [heads_of(linear(w, q + "attention.attention." + name, y, h, True), n)
                 for name in ("query", "key", "value")]
        y = joined(attend(*parts, 1 / math.sqrt(h // n), causal=False))
        x = x + linear(w, q + "attention.output.dense", y, h, True)
        y = gelu(linear(w, q + "intermediate.dense", norm(q + "layernorm_after", x),
                        c["intermediate_size"], True))
        x = x + linear(w, q + "output.dense", y, h, True)
    x = norm(kind + ".layernorm", x)
    return linear(w, "classifier", x.mean(0)[None] if kind == "ijepa" else x[:1], len(c["id2label"]), True)


def vit_22b(w, c, image):
    """Both parts of a layer read one norm, which has no mean and no bias, as queries and keys have one; a learned query reads the class."""
    h, n, norm = c["hidden_size"], c["num_attention_heads"], rms_norms(w, c["layer_norm_eps"])
    x = pictured(w, c, image, "vit.embeddings.patch_embeddings.projection", True)
    x = x + w("vit.embeddings.position_embeddings", 1, x.shape[0], h, scale=0.3)[0]
    for i in range(c["num_hidden_layers"]):
        q = f"vit.encoder.layer.{i}."
        y = norm(q + "layernorm_before", x)
        query, key, value = (heads_of(linear(w, q + "attention.attention." + name, y, h), n) for name in ("query", "key", "value"))
        query, key = norm(q + "attention.attention.query_norm", query), norm(q + "attention.attention.key_norm", key)
        made = linear(w, q + "attention.output.dense", joined(attend(query, key, value, 1 / math.sqrt(h // n), causal=False)), h, True)
        x = x + made + linear(w, q + "output.dense", gelu(linear(w, q + "intermediate.dense", y, c["intermediate_size"], True)), h, True)
    return linear(w, "classifier", by_probe(w, c, "head.", norm("vit.layernorm", x), gelu, norm), len(c["id2label"]), True)


def pictured(w, c, image, patch, biased):
    """Patches by a convolution of their size."""
    h, size = c["hidden_size"], c["patch_size"]
    kernel = w(patch + ".weight", h, c["num_channels"], size, size, scale=0.2)
    bias = w(patch + ".bias", h, scale=0.3) if biased else None
    return torch.nn.functional.conv2d(image[None], kernel, bias, stride=size)[0].reshape(h, -1).T


def dinov2(w, c, image):
    """Branches by factors; registers that have no position; the class is read from the first place and the patches' mean."""
    h, n, p = c["hidden_size"], c["num_attention_heads"], c["model_type"] + "."
    wide, more = h * c["mlp_ratio"], c.get("num_register_tokens", 0)
    x = torch.cat([w(p + "embeddings.cls_token", 1, 1, h, scale=0.5)[0], pictured(w, c, image, p + "embeddings.patch_embeddings.projection", True)])
    x = x + w(p + "embeddings.position_embeddings", 1, len(x), h, scale=0.3)[0]
    if more:
        x = torch.cat([x[:1], w(p + "embeddings.register_tokens", 1, more, h, scale=0.5)[0], x[1:]])
    for i in range(c["num_hidden_layers"]):
        q = f"{p}encoder.layer.{i}."
        y = plain_norm(w, c, q + "norm1", x)
        parts = [heads_of(linear(w, q + "attention.attention." + name, y, h, True), n) for name in ("query", "key", "value")]
        y = linear(w, q + "attention.output.dense", joined(attend(*parts, 1 / math.sqrt(h // n), causal=False)), h, True)
        x = x + y * w(q + "layer_scale1.lambda1", h, scale=0.3, about=1)
        y = plain_norm(w, c, q + "norm2", x)
        if c["use_swiglu_ffn"]:
            f = (int(wide * 2 / 3) + 7) // 8 * 8
            gate, up = linear(w, q + "mlp.weights_in", y, 2 * f, True).split(f, -1)
            y = linear(w, q + "mlp.weights_out", silu(gate) * up, h, True)
        else:
            y = linear(w, q + "mlp.fc2", gelu(linear(w, q + "mlp.fc1", y, wide, True)), h, True)
        x = x + y * w(q + "layer_scale2.lambda1", h, scale=0.3, about=1)
    x = plain_norm(w, c, p + "layernorm", x)
    return linear(w, "classifier", torch.cat([x[0], x[1 + more:].mean(0)])[None], len(c["id2label"]), True)


def beit(w, c, image):
    """Scores with a bias by how far patches are apart; the class is read from the norm of the patches' mean, or the first place."""
    h, n, side = c["hidden_size"], c["num_attention_heads"], c["image_size"] // c["patch_size"]
    across, kind = 2 * side - 1, c["model_type"].replace("-", "_")

    def row(query, memory):
        if 0 in (query, memory):
            return across ** 2 + (2 if query == memory else 0 if query == 0 else 1)
        (r, s), (t, u) = divmod(query - 1, side), divmod(memory - 1, side)
        return (r - t + side - 1) * across + s - u + side - 1

    x = torch.cat([w(kind + ".embeddings.cls_token", 1, 1, h, scale=0.5)[0], pictured(w, c, image, kind + ".embeddings.patch_embeddings.projection", True)])
    if c.get("use_absolute_position_embeddings"):
        x = x + w(kind + ".embeddings.position_embeddings", 1, len(x), h, scale=0.3)[0]
    rows = torch.tensor([[row(i, j) for j in range(len(x))] for i in range(len(x))])
    for i in range(c["num_hidden_layers"]):
        p = f"{kind}.encoder.layer.{i}."
        y, q = plain_norm(w, c, p + "layernorm_before", x), p + "attention.attention."
        parts = [heads_of(linear(w, q + name, y, h, name != "key"), n) for name in ("query", "key", "value")]
        bias = w(q + "relative_position_bias.relative_position_bias_table", across ** 2 + 3, n, scale=1)[rows].permute(2, 0, 1) \
            if c["use_relative_position_bias"] else None
        y = linear(w, p + "attention.output.dense", joined(attend(*parts, 1 / math.sqrt(h // n), causal=False, bias=bias)), h, True)
        scaled = c["layer_scale_init_value"] > 0
        x = x + (y * w(p + "lambda_1", h, scale=0.3, about=1) if scaled else y)
        y = gelu(linear(w, p + "intermediate.dense", plain_norm(w, c, p + "layernorm_after", x), c["intermediate_size"], True))
        y = linear(w, p + "output.dense", y, h, True)
        x = x + (y * w(p + "lambda_2", h, scale=0.3, about=1) if scaled else y)
    read = plain_norm(w, c, kind + ".pooler.layernorm", x[1:].mean(0)[None]) if c["use_mean_pooling"] else plain_norm(w, c, kind + ".layernorm", x)[:1]
    return linear(w, "classifier", read, len(c["id2label"]), True)


def dinov3(w, c, image):
    """Patches that turn by their rows and columns, whose middles lie within -1 and 1; the features of the first place."""
    h, n, f, more = c["hidden_size"], c["num_attention_heads"], c["intermediate_size"], c["num_register_tokens"]
    side, width = c["image_size"] // c["patch_size"], c["hidden_size"] // c["num_attention_heads"]
    middle = (2 * torch.arange(side, dtype=torch.float64) + 1) / side - 1
    speed = c["rope_theta"] ** -(torch.arange(width // 4, dtype=torch.float64) * 4 / width)
    turns = [torch.cat([middle[r] * speed, middle[s] * speed]) for r in range(side) for s in range(side)]
    angle = torch.cat([torch.zeros(1 + more, width // 2, dtype=torch.float64), 2 * math.pi * torch.stack(turns)])

    def turned(x):
        a, b = x.chunk(2, -1)
        return torch.cat([a * torch.cos(angle) - b * torch.sin(angle), b * torch.cos(angle) + a * torch.sin(angle)], -1)

    x = torch.cat([w("embeddings.cls_token", 1, 1, h, scale=0.5)[0], w("embeddings.register_tokens", 1, more, h, scale=0.5)[0],
                   pictured(w, c, image, "embeddings.patch_embeddings", True)])
    for i in range(c["num_hidden_layers"]):
        p = f"layer.{i}."
        y = plain_norm(w, c, p + "norm1", x)
        q, k, v = (heads_of(linear(w, f"{p}attention.{name}_proj", y, h, bias), n) for name, bias in (("q", True), ("k", False), ("v", True)))
        y = linear(w, p + "attention.o_proj", joined(attend(turned(q), turned(k), v, 1 / math.sqrt(width), causal=False)), h, True)
        x = x + y * w(p + "layer_scale1.lambda1", h, scale=0.3, about=1)
        y = plain_norm(w, c, p + "norm2", x)
        hidden = linear(w, p + "mlp.up_proj", y, f, True)
        hidden = silu(linear(w, p + "mlp.gate_proj", y, f, True)) * hidden if c["use_gated_mlp"] else gelu(hidden)
        x = x + linear(w, p + "mlp.down_proj", hidden, h, True) * w(p + "layer_scale2.lambda1", h, scale=0.3, about=1)
    return plain_norm(w, c, "norm", x)[:1]


def resnet(w, c, image):
    """Stages of blocks of convolutions, by the running statistics of their norms."""
    def conv(name, x, out, kernel, stride=1, active=True):
        x = torch.nn.functional.conv2d(x, w(name + ".convolution.weight", out, x.shape[1], kernel, kernel, scale=1 / math.sqrt(x.shape[1]) / kernel),
                                       stride=stride, padding=kernel // 2)
        mean, square = w(name + ".normalization.running_mean", out, scale=0.2), w(name + ".normalization.running_var", out, scale=0.1, about=1)
        scale, bias = w(name + ".normalization.weight", out, scale=0.2, about=1), w(name + ".normalization.bias", out, scale=0.2)
        y = (x - mean[:, None, None]) / torch.sqrt(square + 1e-5)[:, None, None] * scale[:, None, None] + bias[:, None, None]
        return torch.relu(y) if active else y

    x = conv("resnet.embedder.embedder", image[None], c["embedding_size"], 7, 2)
    x = torch.nn.functional.max_pool2d(x, 3, 2, 1)
    for i, (depth, width) in enumerate(zip(c["depths"], c["hidden_sizes"])):
        for j in range(depth):
            p, stride = f"resnet.encoder.stages.{i}.layers.{j}.", 2 if j == 0 and (i > 0 or c["downsample_in_first_stage"]) else 1
            if c["layer_type"] == "basic":
                y = conv(p + "layer.1", conv(p + "layer.0", x, width, 3, stride), width, 3, active=False)
            else:
                early = c["downsample_in_bottleneck"]
                y = conv(p + "layer.1", conv(p + "layer.0", x, width // 4, 1, stride if early else 1), width // 4, 3, 1 if early else stride)
                y = conv(p + "layer.2", y, width, 1, active=False)
            x = torch.relu(y + (conv(p + "shortcut", x, width, 1, stride, False) if stride > 1 or x.shape[1] != width else x))
    return linear(w, "classifier.1", x.mean((2, 3)), len(c["id2label"]), True)


def convnext(w, c, image):
    """Convolutions of each channel, norms over channels, a hidden layer of each place, in the second version with a response norm."""
    kind = c["model_type"] + "."

    def norm(name, x, epsilon=1e-6):
        return layer_norm(x, w(name + ".weight", x.shape[-1], scale=0.2, about=1), w(name + ".bias", x.shape[-1], scale=0.2), epsilon)

    def conv(name, x, out, kernel, stride, padding=0, groups=1):
        weight = w(name + ".weight", out, x.shape[-1] // groups, kernel, kernel, scale=0.2)
        y = torch.nn.functional.conv2d(x.permute(2, 0, 1)[None], weight, w(name + ".bias", out, scale=0.3), stride=stride, padding=padding, groups=groups)
        return y[0].permute(1, 2, 0)

    x = norm(kind + "embeddings.layernorm", conv(kind + "embeddings.patch_embeddings", image.permute(1, 2, 0), c["hidden_sizes"][0],
                                                 c["patch_size"], c["patch_size"]))
    for i, (depth, width) in enumerate(zip(c["depths"], c["hidden_sizes"])):
        p = f"{kind}encoder.stages.{i}."
        if i > 0:
            x = conv(p + "downsampling_layer.1", norm(p + "downsampling_layer.0", x), width, 2, 2)
        for j in range(depth):
            q = f"{p}layers.{j}."
            y = gelu(linear(w, q + "pwconv1", norm(q + "layernorm", conv(q + "dwconv", x, width, 7, 1, 3, width)), 4 * width, True))
            if kind == "convnextv2.":
                length = torch.sqrt((y * y).sum((0, 1)))
                scale, bias = (w(f"{q}grn.{n}", 1, 1, 1, 4 * width, scale=0.3)[0] for n in ("weight", "bias"))
                y = scale * y * (length / (length.mean() + 1e-6)) + bias + y
            y = linear(w, q + "pwconv2", y, width, True)
            x = x + (y * w(q + "layer_scale_parameter", width, scale=0.3, about=1) if c.get("layer_scale_init_value") else y)
    return linear(w, "classifier", norm(kind + "layernorm", x.mean((0, 1))[None], c["layer_norm_eps"]), len(c["id2label"]), True)


def by_probe(w, c, p, x, act=gelu_tanh, norm=None):
    """What one learned query finds, and what a hidden layer makes of it."""
    h, n, f = c["hidden_size"], c["num_attention_heads"], c["intermediate_size"]
    matrix, bias = w(p + "attention.in_proj_weight", 3 * h, h), w(p + "attention.in_proj_bias", 3 * h, scale=0.3)
    q, k, v = (heads_of(of @ rows.T + more, n) for of, rows, more in zip(
        (w(p + "probe", 1, 1, h, scale=1)[0], x, x), matrix.split(h), bias.split(h)))
    y = linear(w, p + "attention.out_proj", joined(attend(q, k, v, 1 / math.sqrt(h // n), causal=False)), h, True)
    return y + linear(w, p + "mlp.fc2", act(linear(w, p + "mlp.fc1", norm(p + "layernorm", y) if norm else plain_norm(w, c, p + "layernorm", y), f, True)), h, True)


def tower(w, c, image):
    """CLIP's or SigLIP's of pictures, alone or of a pair's config."""
    classes = len(c.get("id2label", "..."[:2])) if tells(c, "ForImageClassification") else None
    c = {**c, **c.get("vision_config", {})}
    h, n, p, clip = c["hidden_size"], c["num_attention_heads"], "vision_model.", c["model_type"].startswith("clip")
    act = (lambda x: x * torch.sigmoid(1.702 * x)) if clip else gelu_tanh
    if c["model_type"].startswith("siglip2"):
        size, channels = c["patch_size"], c["num_channels"]
        patches = image.unfold(1, size, size).unfold(2, size, size).permute(1, 2, 3, 4, 0).reshape(-1, size * size * channels)
        x = linear(w, p + "embeddings.patch_embedding", patches, h, True)
    else:
        x = pictured(w, c, image, p + "embeddings.patch_embedding", not clip)
    if clip:
        x = torch.cat([w(p + "embeddings.class_embedding", h, scale=0.5)[None], x])
    x = x + w(p + "embeddings.position_embedding.weight", len(x), h, scale=0.3)
    x = plain_norm(w, c, p + "pre_layrnorm", x) if clip else x
    for i in range(c["num_hidden_layers"]):
        q = f"{p}encoder.layers.{i}."
        y = plain_norm(w, c, q + "layer_norm1", x)
        parts = [heads_of(linear(w, f"{q}self_attn.{name}_proj", y, h, True), n) for name in "qkv"]
        x = x + linear(w, q + "self_attn.out_proj", joined(attend(*parts, 1 / math.sqrt(h // n), causal=False)), h, True)
        y = act(linear(w, q + "mlp.fc1", plain_norm(w, c, q + "layer_norm2", x), c["intermediate_size"], True))
        x = x + linear(w, q + "mlp.fc2", y, h, True)
    if classes and clip:
        return linear(w, "classifier", x[1:].mean(0)[None], classes, True)
    x = plain_norm(w, c, p + "post_layernorm", x)
    if classes:
        return linear(w, "classifier", x.mean(0)[None], classes, True)
    return linear(w, "visual_projection", x[:1], c["projection_dim"]) if clip else by_probe(w, c, p + "head.", x)


def text_tower(w, c, tokens):
    """CLIP's of texts: features of the last place; SigLIP's sees both sides, and what fills its row."""
    h, n, p = c["hidden_size"], c["num_attention_heads"], "text_model."
    both = c["model_type"].startswith("siglip")
    act = gelu_tanh if both else lambda y: y * torch.sigmoid(1.702 * y)
    if both:
        tokens = torch.cat([tokens, torch.full((LENGTH - len(tokens),), c["pad_token_id"])])
    x = w(p + "embeddings.token_embedding.weight", c["vocab_size"], h, scale=0.5)[tokens]
    x = x + w(p + "embeddings.position_embedding.weight", c["max_position_embeddings"], h, scale=0.3)[:len(tokens)]
    for i in range(c["num_hidden_layers"]):
        q = f"{p}encoder.layers.{i}."
        y = plain_norm(w, c, q + "layer_norm1", x)
        parts = [heads_of(linear(w, f"{q}self_attn.{name}_proj", y, h, True), n) for name in "qkv"]
        x = x + linear(w, q + "self_attn.out_proj", joined(attend(*parts, 1 / math.sqrt(h // n), causal=not both)), h, True)
        y = linear(w, q + "mlp.fc1", plain_norm(w, c, q + "layer_norm2", x), c["intermediate_size"], True)
        x = x + linear(w, q + "mlp.fc2", act(y), h, True)
    x = plain_norm(w, c, p + "final_layer_norm", x)[-1:]
    if both:
        return linear(w, p + "head", x, c["projection_size"], True)
    return x if c["architectures"] == ["CLIPTextModel"] else linear(w, "text_projection", x, c["projection_dim"])


def swin(w, c, image):
    """Attention within windows, every second time half a window further; stages of half the rows and columns and twice the features."""
    kind, second = c["model_type"].replace("-", "_").replace("donut_", ""), c["model_type"] == "swinv2"
    norm_5 = layer_norms(w, 1e-5)

    def bias(q, n, side):
        index = torch.cartesian_prod(torch.arange(side), torch.arange(side))
        apart = index[:, None] - index[None, :] + side - 1
        rows = apart[..., 0] * (2 * side - 1) + apart[..., 1]
        if not second:
            return w(q + "relative_position_bias_table", (2 * side - 1) ** 2, n, scale=1)[rows].permute(2, 0, 1)
        known = c["pretrained_window_sizes"][stage] or side
        line = torch.arange(-(side - 1), side, dtype=torch.float64) / (known - 1) * 8
        line = torch.sign(line) * torch.log2(line.abs() + 1) / 3
        table = torch.relu(linear(w, q + "continuous_position_bias_mlp.0", torch.cartesian_prod(line, line), 512, True))
        return (16 * torch.sigmoid(linear(w, q + "continuous_position_bias_mlp.2", table, n)))[rows].permute(2, 0, 1)

    def attention(q, x, n, side, shift):
        h = x.shape[-1]
        size, full = x.shape[0], -(-x.shape[0] // side) * side
        x = torch.nn.functional.pad(x, (0, 0, 0, full - size, 0, full - size))
        where = torch.zeros(full, dtype=torch.int64)
        if shift:
            x, where = torch.roll(x, (-shift, -shift), (0, 1)), where + (torch.arange(full) >= full - side) + (torch.arange(full) >= full - shift)
        y = torch.zeros_like(x)
        more = bias(q + "attention.self.", n, side)
        for i in range(0, full, side):
            for j in range(0, full, side):
                here = x[i:i + side, j:j + side].reshape(side * side, h)
                region = (where[i:i + side, None] * 3 + where[None, j:j + side]).flatten()
                mask = -100.0 * (region[:, None] != region[None, :])
                parts = [heads_of(linear(w, f"{q}attention.self.{name}", here, h, c["qkv_bias"] and not (second and name == "key")), n)
                         for name in ("query", "key", "value")]
                scale = 1 / math.sqrt(h // n)
                if second:
                    of = torch.exp(w(q + "attention.self.logit_scale", n, 1, 1, scale=0.5, about=2.5).clamp(max=math.log(100)))
                    parts = [torch.nn.functional.normalize(parts[0], dim=-1) * of, torch.nn.functional.normalize(parts[1], dim=-1), parts[2]]
                    scale = 1
                y[i:i + side, j:j + side] = joined(attend(*parts, scale, causal=False, bias=more + mask)).reshape(side, side, h)
        y = torch.roll(y, (shift, shift), (0, 1)) if shift else y
        return linear(w, q + "attention.output.dense", y[:size, :size], h, True)

    c = {**c, "hidden_size": c["embed_dim"]}
    size = c["image_size"] // c["patch_size"]
    x = pictured(w, c, image, kind + ".embeddings.patch_embeddings.projection", True).reshape(size, size, -1)
    x = norm_5(kind + ".embeddings.norm", x)
    for stage, (depth, n) in enumerate(zip(c["depths"], c["num_heads"])):
        if stage > 0:
            p, size = f"{kind}.encoder.layers.{stage - 1}.downsample.", (size + 1) // 2
            x = torch.nn.functional.pad(x, (0, 0, 0, 2 * size - len(x), 0, 2 * size - len(x)))
            x = torch.cat([x[0::2, 0::2], x[1::2, 0::2], x[0::2, 1::2], x[1::2, 1::2]], -1)
            out = x.shape[-1] // 2
            x = norm_5(p + "norm", linear(w, p + "reduction", x, out)) if second else linear(w, p + "reduction", norm_5(p + "norm", x), out)
        side = min(c["window_size"], size)
        for i in range(depth):
            q = f"{kind}.encoder.layers.{stage}.blocks.{i}."
            shift = side // 2 if i % 2 and size > side else 0

            def ffn(y):
                hidden = gelu(linear(w, q + "intermediate.dense", y, int(c["mlp_ratio"] * y.shape[-1]), True))
                return linear(w, q + "output.dense", hidden, y.shape[-1], True)
            for name, branch in (("layernorm_before", lambda y: attention(q, y, n, side, shift)), ("layernorm_after", ffn)):
                x = x + (plain_norm(w, c, q + name, branch(x)) if second else branch(plain_norm(w, c, q + name, x)))
    x = plain_norm(w, c, kind + ".layernorm", x).mean((0, 1))[None]
    return linear(w, "classifier", x, len(c["id2label"]), True) if tells(c, "ForImageClassification") else x


def spectrum(w, c, sound):
    """Patches of a spectrum [times, bands], which overlap, behind two places of their own; the class is read from the norm of both's mean."""
    h, n, p, size = c["hidden_size"], c["num_attention_heads"], "audio_spectrogram_transformer.", c["patch_size"]
    kernel, bias = w(p + "embeddings.patch_embeddings.projection.weight", h, 1, size, size, scale=0.2), w(p + "embeddings.patch_embeddings.projection.bias", h, scale=0.3)
    x = torch.nn.functional.conv2d(sound.T[None, None], kernel, bias, stride=(c["frequency_stride"], c["time_stride"]))[0].reshape(h, -1).T
    x = torch.cat([*(w(p + f"embeddings.{name}_token", 1, 1, h, scale=0.5)[0] for name in ("cls", "distillation")), x])
    x = x + w(p + "embeddings.position_embeddings", 1, x.shape[0], h, scale=0.3)[0]
    for i in range(c["num_hidden_layers"]):
        q = f"{p}encoder.layer.{i}."
        y = plain_norm(w, c, q + "layernorm_before", x)
        parts = [heads_of(linear(w, q + "attention.attention." + name, y, h, True), n) for name in ("query", "key", "value")]
        x = x + linear(w, q + "attention.output.dense", joined(attend(*parts, 1 / math.sqrt(h // n), causal=False)), h, True)
        y = gelu(linear(w, q + "intermediate.dense", plain_norm(w, c, q + "layernorm_after", x), c["intermediate_size"], True))
        x = x + linear(w, q + "output.dense", y, h, True)
    x = plain_norm(w, c, p + "layernorm", x)
    return linear(w, "classifier.dense", plain_norm(w, c, "classifier.layernorm", (x[:1] + x[1:2]) / 2), len(c["id2label"]), True)


def wav2vec2(w, c, sound):
    """Convolutions over samples, one (or several) over places, whose filters have a length of their own tap by tap; an encoder."""
    h, n, kind = c["hidden_size"], c["num_attention_heads"], c["model_type"].replace("data2vec-audio", "data2vec_audio").replace("-", "_")
    p, several = kind + ".", c["model_type"] == "data2vec-audio"
    x = sound[None]
    for i, (out, taps, stride) in enumerate(zip(c["conv_dim"], c["conv_kernel"], c["conv_stride"])):
        q = f"{p}feature_extractor.conv_layers.{i}."
        bias = w(q + "conv.bias", out, scale=0.3) if c["conv_bias"] else None
        x = torch.nn.functional.conv1d(x[None], w(q + "conv.weight", out, len(x), taps, scale=0.7), bias, stride=stride)[0]
        if c.get("feat_extract_norm") == "layer" or several:
            x = layer_norms(w, 1e-5)(q + "layer_norm", x.T).T
        elif i == 0:
            mean, variance = x.mean(1, keepdim=True), x.var(1, keepdim=True, unbiased=False)
            scale, more = w(q + "layer_norm.weight", out, scale=0.2, about=1), w(q + "layer_norm.bias", out, scale=0.2)
            x = (x - mean) / torch.sqrt(variance + 1e-5) * scale[:, None] + more[:, None]
        x = gelu(x)
    x = x.T
    if c.get("feat_proj_layer_norm", True):
        x = plain_norm(w, c, p + "feature_projection.layer_norm", x)
    x = linear(w, p + "feature_projection.projection", x, h, True)
    told, taps = x, c["conv_pos_kernel_size"] if several else c["num_conv_pos_embeddings"]
    for i in range(c["num_conv_pos_embeddings"] if several else 1):
        q, groups = p + "encoder.pos_conv_embed." + (f"layers.{i}.conv" if several else "conv"), c["num_conv_pos_embedding_groups"]
        if several:
            kernel = w(q + ".weight", h, h // groups, taps, scale=0.5)
        else:
            v = w(q + ".weight_v", h, h // groups, taps, scale=0.5)
            kernel = w(q + ".weight_g", 1, 1, taps, scale=0.5, about=3) * v / torch.sqrt((v * v).sum((0, 1), keepdim=True))
        told = torch.nn.functional.conv1d(told.T[None], kernel, w(q + ".bias", h, scale=0.3), padding=taps // 2, groups=groups)[0].T[:len(x)]
        told = gelu(layer_norm(told, 1, 0, 1e-5) if several else told)
    x, first = x + told, c.get("do_stable_layer_norm", False)
    x = x if first else plain_norm(w, c, p + "encoder.layer_norm", x)
    gated = c["model_type"] == "wavlm"
    if gated:
        half, most = c["num_buckets"] // 2, c["max_bucket_distance"]

        def bucket(distance):
            near, exact = abs(distance), half // 2
            far = exact + int(math.log(max(near, 1) / exact) / math.log(most / exact) * (half - exact))
            return (near if near < exact else min(far, half - 1)) + half * (distance > 0)
        rows = torch.tensor([[bucket(j - i) for j in range(len(x))] for i in range(len(x))])
        apart = w(p + "encoder.layers.0.attention.rel_attn_embed.weight", c["num_buckets"], n, scale=1)[rows].permute(2, 0, 1)
    for i in range(c["num_hidden_layers"]):
        q = f"{p}encoder.layers.{i}."

        def attention(y):
            parts = [heads_of(linear(w, f"{q}attention.{name}_proj", y, h, True), n) for name in "qkv"]
            bias = None
            if gated:
                outputs = linear(w, q + "attention.gru_rel_pos_linear", heads_of(y, n), 8, True)
                a, b = torch.sigmoid(outputs.reshape(n, len(y), 2, 4).sum(-1)).split(1, -1)
                bias = (a * (b * w(q + "attention.gru_rel_pos_const", 1, n, 1, 1, scale=0.5, about=1)[0] - 1) + 2) * apart
            return linear(w, q + "attention.out_proj", joined(attend(*parts, 1 / math.sqrt(h // n), causal=False, bias=bias)), h, True)

        def ffn(y):
            return linear(w, q + "feed_forward.output_dense", gelu(linear(w, q + "feed_forward.intermediate_dense", y, c["intermediate_size"], True)), h, True)
        for name, branch in (("layer_norm", attention), ("final_layer_norm", ffn)):
            x = x + branch(plain_norm(w, c, q + name, x)) if first else plain_norm(w, c, q + name, x + branch(x))
    x = plain_norm(w, c, p + "encoder.layer_norm", x) if first else x
    if tells(c, "ForCTC"):
        return linear(w, "lm_head", x, c["vocab_size"], True)
    if tells(c, "ForAudioFrameClassification"):
        return linear(w, "classifier", x, len(c["id2label"]), True)
    if tells(c, "ForSequenceClassification"):
        return linear(w, "classifier", linear(w, "projector", x, c["classifier_proj_size"], True).mean(0)[None], len(c["id2label"]), True)
    return x


def whisper(w, c, sound, tokens):
    """Two convolutions and an encoder of sound, a decoder of text that attends to it."""
    h = c["d_model"]

    def norm(name, x):
        return layer_norm(x, w(name + ".weight", h, scale=0.2, about=1),
                          w(name + ".bias", h, scale=0.2), 1e-5)

    def attention(p, x, source, heads, causal):
        q = heads_of(linear(w, p + "q_proj", x, h, True), heads)
        k = heads_of(linear(w, p + "k_proj", source, h), heads)
        v = heads_of(linear(w, p + "v_proj", source, h, True), heads)
        y = attend(q, k, v, 1 / math.sqrt(h // heads), causal=causal)
        return linear(w, p + "out_proj", joined(y), h, True)

    def stack(name, x, source):
        for i in range(c[name + "_layers"]):
            p, heads = f"model.{name}.layers.{i}.", c[name + "_attention_heads"]
            y = norm(p + "self_attn_layer_norm", x)
            x = x + attention(p + "self_attn.", y, y, heads, source is not None)
            if source is not None:
                y = norm(p + "encoder_attn_layer_norm", x)
                x = x + attention(p + "encoder_attn.", y, source, heads, False)
            y = linear(w, p + "fc1", norm(p + "final_layer_norm", x), c[name + "_ffn_dim"], True)
            x = x + linear(w, p + "fc2", gelu(y), h, True)
        return norm(f"model.{name}.layer_norm", x)

    def conv(name, x, stride):
        p = "model.encoder." + name
        kernel = w(p + ".weight", h, x.shape[0], 3, scale=0.3)
        return gelu(torch.nn.functional.conv1d(x[None], kernel, w(p + ".bias", h, scale=0.3),
                                               stride=stride, padding=1)[0])

    x = conv("conv2", conv("conv1", sound, 1), 2).T
    x = x + w("model.encoder.embed_positions.weight", x.shape[0], h, scale=0.5)
    table = w("model.decoder.embed_tokens.weight", c["vocab_size"], h, scale=0.5)
    places = w("model.decoder.embed_positions.weight", c["max_target_positions"], h, scale=0.3)
    return stack("decoder", table[tokens] + places[:len(tokens)], stack("encoder", x, None)) @ table.T


def waves(first, count, width, steps):
    """Sines of all frequencies, 10000^(-i / steps), then cosines."""
    place = torch.arange(first, first + count, dtype=torch.float64)[:, None]
    angle = place * 10000.0 ** (-torch.arange(width // 2, dtype=torch.float64) / steps)[None]
    return torch.cat([angle.sin(), angle.cos()], -1)


def bart(w, c, tokens, read=None):
    """BART and its kin; what is read is what is said where nothing else is given."""
    h, kind = c["d_model"], c["model_type"]
    act = {"gelu": gelu, "relu": torch.relu, "swish": torch.nn.functional.silu}[c["activation_function"]]
    table = w("model.shared.weight", c["vocab_size"], h, scale=0.5)
    first = 2 if kind in ("bart", "plbart", "mbart", "m2m_100") else 0
    norm_first = kind not in ("bart", "plbart", "marian", "blenderbot-small")
    norm = layer_norms(w, 1e-5)

    def places(name, count):
        if kind in ("marian", "pegasus", "m2m_100"):
            return waves(first, count, h, h // 2 - (kind == "m2m_100"))
        rows = w(f"model.{name}.embed_positions.weight", c["max_position_embeddings"] + first, h, scale=0.3)
        return rows[first:first + count]

    def attention(p, x, source, heads, causal):
        q, k, v = (linear(w, p + part, y, h, True) for part, y in (("q_proj", x), ("k_proj", source), ("v_proj", source)))
        y = attend(heads_of(q, heads), heads_of(k, heads), heads_of(v, heads), 1 / math.sqrt(h // heads), causal=causal)
        return linear(w, p + "out_proj", joined(y), h, True)

    def part(name, x, branch):
        return x + branch(norm(name, x)) if norm_first else norm(name, x + branch(x))

    def stack(name, text, source):
        x = table[text] * (math.sqrt(h) if c.get("scale_embedding") else 1)
        if kind == "blenderbot-small" and source is not None:
            x = norm(f"model.{name}.layernorm_embedding", x) + places(name, len(text))
        elif kind in ("bart", "plbart", "mbart", "blenderbot-small"):
            x = norm(f"model.{name}.layernorm_embedding", x + places(name, len(text)))
        else:
            x = x + places(name, len(text))
        for i in range(c[name + "_layers"]):
            p, heads = f"model.{name}.layers.{i}.", c[name + "_attention_heads"]
            x = part(p + "self_attn_layer_norm", x, lambda y: attention(p + "self_attn.", y, y, heads, source is not None))
            if source is not None:
                x = part(p + "encoder_attn_layer_norm", x, lambda y: attention(p + "encoder_attn.", y, source, heads, False))
            x = part(p + "final_layer_norm", x, lambda y: linear(
                w, p + "fc2", act(linear(w, p + "fc1", y, c[name + "_ffn_dim"], True)), h, True))
        return norm(f"model.{name}.layer_norm", x) if norm_first else x

    x = stack("decoder", tokens, stack("encoder", tokens if read is None else read, None))
    if kind == "m2m_100":
        return x @ table.T
    return x @ table.T + w("final_logits_bias", 1, c["vocab_size"], scale=0.3)


LLAMA = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2,
         "num_attention_heads": 6, "num_key_value_heads": 2, "vocab_size": 50, "hidden_act": "silu",
         "max_position_embeddings": 32, "rms_norm_eps": 1e-5, "tie_word_embeddings": False}
QWEN3_VL = {**LLAMA, "model_type": "qwen3_vl_text", "head_dim": 8, "rope_theta": 100.0,
            "rope_scaling": {"rope_type": "default", "mrope_section": [2, 1, 1], "mrope_interleaved": True}}
GEMMA = {**LLAMA, "head_dim": 8, "tie_word_embeddings": True,
         "hidden_activation": "gelu_pytorch_tanh", "hidden_act": "gelu_pytorch_tanh"}
LLAMA31 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
           "original_max_position_embeddings": 16}

BERT = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2,
        "num_attention_heads": 3, "vocab_size": 50, "max_position_embeddings": 32,
        "layer_norm_eps": 1e-12, "type_vocab_size": 2, "hidden_act": "gelu", "pad_token_id": 0}
DISTILBERT = {"dim": 24, "hidden_dim": 40, "n_layers": 2, "n_heads": 3, "vocab_size": 50, "activation": "gelu",
              "max_position_embeddings": 32, "sinusoidal_pos_embds": False, "tie_weights_": True, "qa_dropout": 0.1}
ALBERT = {**BERT, "embedding_size": 16, "hidden_act": "gelu_new", "num_hidden_layers": 3, "num_hidden_groups": 1, "inner_group_num": 1}
CLASSES = {"id2label": {str(i): "x" for i in range(3)}}
DEBERTA = {**BERT, "layer_norm_eps": 1e-7, "type_vocab_size": 0, "relative_attention": True, "position_biased_input": False, "position_buckets": 6,
           "max_relative_positions": 9, "norm_rel_ebd": "layer_norm", "share_att_key": True, "pos_att_type": "p2c|c2p", "pooler_hidden_size": 24}
DEBERTA_1 = {**{key: DEBERTA[key] for key in DEBERTA if key not in ("position_buckets", "norm_rel_ebd", "share_att_key")}, "talking_head": False}
MODERNBERT = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 3, "vocab_size": 50,
              "max_position_embeddings": 32, "norm_eps": 1e-5, "local_attention": 6, "layer_types": ["sliding_attention", "full_attention"],
              "global_rope_theta": 160000.0, "local_rope_theta": 100.0, "attention_bias": False, "mlp_bias": False}
T5 = {"d_model": 24, "d_kv": 10, "d_ff": 40, "num_layers": 2, "num_decoder_layers": 1,
      "num_heads": 3, "vocab_size": 256, "layer_norm_epsilon": 1e-6, "feed_forward_proj": "relu",
      "relative_attention_num_buckets": 8, "relative_attention_max_distance": 9,
      "tie_word_embeddings": True, "is_encoder_decoder": True, "decoder_start_token_id": 4, "eos_token_id": 1}
BART = {"d_model": 24, "encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 3, "decoder_attention_heads": 2,
        "encoder_ffn_dim": 40, "decoder_ffn_dim": 36, "activation_function": "gelu", "max_position_embeddings": 32,
        "vocab_size": 256, "scale_embedding": False, "tie_word_embeddings": True, "is_encoder_decoder": True,
        "decoder_start_token_id": 4, "eos_token_id": 1, "dropout": 0.1, "attention_dropout": 0.0}

PICTURE = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 3, "image_size": 12,
           "patch_size": 4, "num_channels": 3, "layer_norm_eps": 1e-5}
RESNET = {"num_channels": 3, "embedding_size": 8, "hidden_sizes": [16, 24, 32], "depths": [2, 1, 2], "layer_type": "bottleneck",
          "hidden_act": "relu", "downsample_in_first_stage": False, "downsample_in_bottleneck": False, "image_size": 32,
          "id2label": {str(i): "x" for i in range(7)}}
CONVNEXT = {"num_channels": 3, "hidden_sizes": [8, 16, 24], "depths": [1, 2, 1], "num_stages": 3, "patch_size": 2, "image_size": 24,
            "hidden_act": "gelu", "layer_norm_eps": 1e-12, "drop_path_rate": 0.1, "id2label": {str(i): "x" for i in range(7)}}
SIGLIP_TEXT = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 3, "vocab_size": 60,
               "max_position_embeddings": 20, "layer_norm_eps": 1e-6, "projection_size": 10, "hidden_act": "gelu_pytorch_tanh", "pad_token_id": 1,
               "architectures": ["SiglipTextModel"]}
SOUND = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 3, "layer_norm_eps": 1e-5, "conv_dim": [8, 6, 10],
         "conv_kernel": [10, 3, 2], "conv_stride": [5, 2, 2], "conv_bias": False, "num_conv_pos_embeddings": 6, "num_conv_pos_embedding_groups": 4,
         "feat_extract_norm": "group", "vocab_size": 11, "mask_time_prob": 0.05, "ctc_loss_reduction": "sum", "classifier_proj_size": 7,
         "pad_token_id": 0}
SWIN = {"image_size": 24, "patch_size": 2, "num_channels": 3, "embed_dim": 8, "depths": [2, 3, 1], "num_heads": [2, 4, 2], "window_size": 4,
        "mlp_ratio": 2.0, "qkv_bias": True, "layer_norm_eps": 1e-5, "hidden_act": "gelu", "drop_path_rate": 0.1, "hidden_size": 32}
SEVEN = {"id2label": {str(i): "x" for i in range(7)}}


def without_rms(config):
    return {key: value for key, value in config.items() if key != "rms_norm_eps"}


V3_EXPERTS = {"n_routed_experts": 8, "num_experts_per_tok": 3, "n_shared_experts": 2, "moe_intermediate_size": 12, "n_group": 4,
              "topk_group": 2, "first_k_dense_replace": 1, "routed_scaling_factor": 2.0}
NEOX = {"hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
        "vocab_size": 50, "hidden_act": "gelu", "max_position_embeddings": 32, "layer_norm_eps": 1e-5,
        "rotary_pct": 0.5, "rotary_emb_base": 100, "use_parallel_residual": True, "tie_word_embeddings": False}
FALCON = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 6, "vocab_size": 50, "layer_norm_epsilon": 1e-5,
          "max_position_embeddings": 32, "bias": False, "multi_query": True, "parallel_attn": True, "alibi": False,
          "new_decoder_architecture": False}
DEEPSEEK_V2 = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4,
               "vocab_size": 50, "rms_norm_eps": 1e-6, "rope_theta": 1e4, "tie_word_embeddings": False, "max_position_embeddings": 64,
               "kv_lora_rank": 14, "q_lora_rank": None, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 6,
               "n_routed_experts": 6, "num_experts_per_tok": 3, "n_shared_experts": 2, "moe_intermediate_size": 12,
               "norm_topk_prob": False, "first_k_dense_replace": 1, "moe_layer_freq": 1, "scoring_func": "softmax",
               "topk_method": "greedy", "n_group": 1, "topk_group": 1, "routed_scaling_factor": 1.0,
               "rope_scaling": {"type": "yarn", "factor": 4, "beta_fast": 32, "beta_slow": 1, "mscale": 0.707,
                                "mscale_all_dim": 0.707, "original_max_position_embeddings": 16}}
DEEPSEEK_V3 = {**DEEPSEEK_V2, "q_lora_rank": 10, "n_routed_experts": 8, "scoring_func": "sigmoid",
               "topk_method": "noaux_tc", "n_group": 4, "topk_group": 2, "norm_topk_prob": True,
               "n_shared_experts": 1, "routed_scaling_factor": 2.5, "num_nextn_predict_layers": 1}

MISTRAL4 = {**{key: DEEPSEEK_V2[key] for key in DEEPSEEK_V2 if key not in ("rope_scaling", "rope_theta", "scoring_func", "topk_method")},
            "q_lora_rank": 10, "n_routed_experts": 8, "n_group": 4, "topk_group": 2, "norm_topk_prob": True, "first_k_dense_replace": 0,
            "routed_scaling_factor": 1.5, "head_dim": 12, "rope_parameters": {
                "type": "yarn", "rope_theta": 1e4, "factor": 4, "beta_fast": 32, "beta_slow": 1, "mscale": 0.707, "mscale_all_dim": 0.707,
                "original_max_position_embeddings": 4, "max_position_embeddings": 64, "llama_4_scaling_beta": 0.7,
                "partial_rotary_factor": 1 / 3}}

LFM2 = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 2,
        "vocab_size": 50, "max_position_embeddings": 32, "norm_eps": 1e-5, "rope_theta": 100.0, "conv_L_cache": 3, "conv_bias": False,
        "layer_types": ["conv", "full_attention", "conv"]}

OLMO_HYBRID = {**LLAMA, "num_hidden_layers": 3, "layer_types": ["linear_attention", "linear_attention", "full_attention"],
               "linear_num_key_heads": 3, "linear_num_value_heads": 6, "linear_key_head_dim": 6, "linear_value_head_dim": 8,
               "linear_conv_kernel_dim": 4, "linear_allow_neg_eigval": True, "rope_parameters": None}
QWEN_NEXT = {**LLAMA, "head_dim": 8, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 6,
             "linear_value_head_dim": 8, "linear_conv_kernel_dim": 4}
QWEN3_5 = {**QWEN_NEXT, "layer_types": ["linear_attention", "full_attention"], "attn_output_gate": True, "mtp_num_hidden_layers": 1,
           "rope_parameters": {"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 0.25, "mrope_section": [1]}}

MAMBA = {"hidden_size": 24, "state_size": 5, "num_hidden_layers": 2, "vocab_size": 50, "layer_norm_epsilon": 1e-5, "expand": 2, "conv_kernel": 4,
         "use_bias": False, "use_conv_bias": True, "hidden_act": "silu", "time_step_rank": "auto", "residual_in_fp32": True}
GRANITE4 = {**LLAMA, "layer_types": ["mamba", "attention"], "position_embedding_type": "nope", "mamba_n_heads": 6, "mamba_d_head": 8,
            "mamba_n_groups": 1, "mamba_d_state": 5, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_conv_bias": True, "mamba_proj_bias": False,
            "num_local_experts": 4, "num_experts_per_tok": 2, "shared_intermediate_size": 20, "intermediate_size": 12, "embedding_multiplier": 3.0,
            "residual_multiplier": 0.5, "attention_multiplier": 0.3, "logits_scaling": 2.0, "tie_word_embeddings": True}

FALCON_H1 = {**LLAMA, "head_dim": 8, "rope_theta": 100.0, "mamba_d_ssm": 40, "mamba_n_heads": 4, "mamba_d_head": 10, "mamba_n_groups": 2,
             "mamba_d_state": 5, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_conv_bias": True, "mamba_proj_bias": False, "projectors_bias": False,
             "mamba_rms_norm": True, "mamba_norm_before_gate": True, "embedding_multiplier": 2.0, "lm_head_multiplier": 0.5,
             "mlp_multipliers": [0.7, 0.6], "key_multiplier": 0.8, "attention_in_multiplier": 1.1, "attention_out_multiplier": 0.9,
             "ssm_multipliers": [0.9, 0.8, 1.1, 1.2, 0.7], "ssm_in_multiplier": 1.2, "ssm_out_multiplier": 0.6}

GEMMA4 = {**LLAMA, "num_hidden_layers": 4, "head_dim": 8, "global_head_dim": 16, "sliding_window": 5, "tie_word_embeddings": True,
          "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"], "hidden_activation": "gelu_pytorch_tanh",
          "rope_parameters": {"sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
                              "full_attention": {"rope_type": "proportional", "rope_theta": 1000.0, "partial_rotary_factor": 0.25}},
          "attention_k_eq_v": False, "num_kv_shared_layers": 0, "use_double_wide_mlp": False, "enable_moe_block": False,
          "vocab_size_per_layer_input": 50, "hidden_size_per_layer_input": 6, "final_logit_softcapping": 3.0}

MODELS = {
    "recurrent_gemma": (recurrent_gemma, {"hidden_size": 24, "intermediate_size": 80, "num_hidden_layers": 4, "num_attention_heads": 2,
                                          "num_key_value_heads": 1, "vocab_size": 50, "lru_width": 32, "attention_window_size": 5, "conv1d_width": 4,
                                          "block_types": ["recurrent", "recurrent", "attention"], "partial_rotary_factor": 0.5, "rope_theta": 100.0,
                                          "rms_norm_eps": 1e-6, "logits_soft_cap": 3.0, "hidden_activation": "gelu_pytorch_tanh"}),
    "gemma3n_text": (gemma3n, {**LLAMA, "num_hidden_layers": 4, "head_dim": 8, "tie_word_embeddings": True, "sliding_window": 5,
                               "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
                               "num_kv_shared_layers": 2, "hidden_activation": "gelu_pytorch_tanh", "intermediate_size": [40, 40, 40, 40],
                               "activation_sparsity_pattern": [0.9, 0.9, 0.0, 0.0], "rope_theta": 1000.0, "rope_local_base_freq": 10.0,
                               "hidden_size_per_layer_input": 6, "vocab_size_per_layer_input": 50, "altup_num_inputs": 3, "altup_active_idx": 0,
                               "altup_coef_clip": 120.0, "altup_correct_scale": True, "laurel_rank": 4, "final_logit_softcapping": 3.0}),
    "exaone": (exaone, {**{key: LLAMA[key] for key in LLAMA if key not in ("num_hidden_layers", "rms_norm_eps", "hidden_act")}, "num_layers": 2,
                        "layer_norm_epsilon": 1e-5, "activation_function": "silu", "rope_theta": 100.0, "rope_scaling": LLAMA31}),
    "minicpm": (minicpm, {**LLAMA, "scale_emb": 3, "scale_depth": 1.4, "dim_model_base": 12, "tie_word_embeddings": True}),
    "internlm2": (internlm2, {**LLAMA, "bias": False, "rope_theta": 100.0, "rope_scaling": {"type": "dynamic", "factor": 2.0}}),
    "internlm2-biased": (internlm2, {**LLAMA, "bias": True, "num_key_value_heads": 3}),
    "modernbert-decoder": (modernbert_decoder, {**MODERNBERT, "num_hidden_layers": 3, "sliding_window": 3, "tie_word_embeddings": True,
                                                "layer_types": ["full_attention", "sliding_attention", "sliding_attention"]}),
    "idefics3": (with_texts_within, {"vocab_size": 50, "vision_config": {"hidden_size": 4}, "image_token_id": 3, "text_config": {
        **LLAMA, "model_type": "llama", "pad_token_id": 2}}),
    "mamba": (mamba, MAMBA),
    "minimax": (minimax, {**LLAMA, "num_hidden_layers": 3, "head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 12,
                          "layer_types": ["linear_attention", "full_attention", "linear_attention"], "block_size": 4, "rope_theta": 100.0,
                          "linear_attn_alpha_factor": 1.3, "linear_attn_beta_factor": 0.9, "full_attn_alpha_factor": 1.2,
                          "full_attn_beta_factor": 1.1, "mlp_alpha_factor": 0.8, "mlp_beta_factor": 1.4}),
    "gemma4_text": (gemma4, {**GEMMA4, "num_kv_shared_layers": 2, "use_double_wide_mlp": True}),
    "gemma4_text-experts": (gemma4, {**GEMMA4, "num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"],
                                     "attention_k_eq_v": True, "num_global_key_value_heads": 1, "hidden_size_per_layer_input": 0,
                                     "enable_moe_block": True, "num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 12,
                                     "final_logit_softcapping": None}),
    "falcon_h1": (falcon_h1, FALCON_H1),
    "falcon_h1-bare": (falcon_h1, {**FALCON_H1, "mamba_rms_norm": False, "mamba_n_groups": 1, "mamba_proj_bias": True, "projectors_bias": True,
                                   "ssm_in_multiplier": 1.0}),
    "mamba2": (mamba2, {**MAMBA, "num_heads": 6, "head_dim": 8, "n_groups": 2, "chunk_size": 4, "use_bias": True, "time_step_limit": [0.3, 0.9]}),
    "jamba": (jamba, {**LLAMA, "attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2, "expert_layer_offset": 1, "num_experts": 4,
                      "num_experts_per_tok": 2, "mamba_d_state": 5, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_dt_rank": "auto",
                      "mamba_conv_bias": True, "mamba_proj_bias": False, "num_logits_to_keep": 1, "use_mamba_kernels": True}),
    "nemotron_h": (nemotron_h, {"hidden_size": 24, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 50,
                                "hybrid_override_pattern": "ME*-", "num_hidden_layers": 4, "intermediate_size": 40, "mlp_hidden_act": "relu2",
                                "mamba_num_heads": 6, "mamba_head_dim": 8, "n_groups": 2, "ssm_state_size": 5, "conv_kernel": 4, "use_bias": False,
                                "use_conv_bias": True, "layer_norm_epsilon": 1e-5, "n_routed_experts": 6, "num_experts_per_tok": 2, "n_group": 3,
                                "topk_group": 2, "moe_intermediate_size": 12, "moe_shared_expert_intermediate_size": 10, "n_shared_experts": 1,
                                "moe_latent_size": 14, "norm_topk_prob": True, "routed_scaling_factor": 1.5, "time_step_limit": [0.0, float("inf")],
                                "max_position_embeddings": 64}),
    "exaone_moe": (exaone_moe, {**LLAMA, "num_hidden_layers": 3, "head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2, "num_shared_experts": 2,
                                "moe_intermediate_size": 12, "first_k_dense_replace": 1, "mlp_layer_types": ["dense", "sparse", "sparse"],
                                "layer_types": ["sliding_attention", "full_attention", "sliding_attention"], "sliding_window": 5,
                                "sliding_window_pattern": 2, "norm_topk_prob": True, "routed_scaling_factor": 1.5, "rope_theta": 100.0}),
    "exaone_moe-flags": (exaone_moe, {**LLAMA, "num_hidden_layers": 2, "head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2,
                                      "num_shared_experts": 1, "moe_intermediate_size": 12, "is_moe_layer": [False, True],
                                      "layer_types": ["sliding_attention", "full_attention"], "sliding_window": 5, "routed_scaling_factor": 2.5,
                                      "norm_topk_prob": True, "rope_theta": 100.0}),
    "ministral": (llama_like, {**LLAMA, "head_dim": 8, "sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"],
                               "rope_theta": 100.0}),
    "afmoe": (afmoe, {**LLAMA, "num_hidden_layers": 3, "head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2, "num_shared_experts": 2,
                      "moe_intermediate_size": 12, "num_dense_layers": 1, "global_attn_every_n_layers": 3, "sliding_window": 5, "route_scale": 1.5,
                      "mup_enabled": True, "rope_theta": 100.0}),
    "granitemoehybrid": (hybrid, GRANITE4),
    "bamba": (hybrid, {**{key: GRANITE4[key] for key in GRANITE4 if key.startswith("mamba") or key in LLAMA}, "attn_layer_indices": [1],
                       "rope_theta": 100.0, "tie_word_embeddings": False}),
    "granitemoehybrid-dense": (hybrid, {**GRANITE4, "num_local_experts": 0, "num_experts_per_tok": 0, "position_embedding_type": "rope",
                                                "rope_theta": 100.0, "mamba_n_groups": 2, "mamba_conv_bias": False}),
    "falcon_mamba": (mamba, {**MAMBA, "intermediate_size": 40, "use_bias": True, "time_step_rank": 6, "mixer_rms_eps": 1e-6,
                             "tie_word_embeddings": False}),
    "qwen3_next": (qwen_next, {**QWEN_NEXT, "full_attention_interval": 2, "num_experts": 4, "num_experts_per_tok": 2, "rope_theta": 100.0,
                               "moe_intermediate_size": 12, "shared_expert_intermediate_size": 10, "norm_topk_prob": True}),
    "qwen3_5_text": (qwen_next, {**QWEN3_5, "linear_num_value_heads": 2, "tie_word_embeddings": True}),
    "qwen3_5_moe_text": (qwen_next, {**QWEN3_5, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 12,
                                     "shared_expert_intermediate_size": 10}),
    "qwen3_5": (with_pictures_within, {"vocab_size": 50, "vision_config": {"hidden_size": 4}, "image_token_id": 3,
                                       "text_config": {**QWEN3_5, "model_type": "qwen3_5_text"}}),
    "lfm2": (lfm2, {**LFM2, "block_multiple_of": 8, "block_ffn_dim_multiplier": 1.0}),
    "lfm2-older": (lfm2, {**{key: value for key, value in LFM2.items() if key != "layer_types"}, "full_attn_idxs": [2], "conv_bias": True,
                          "conv_L_cache": 4, "block_auto_adjust_ff_dim": False, "tie_embedding": True}),
    "lfm2_moe": (lfm2, {**LFM2, "num_dense_layers": 1, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 12,
                        "norm_topk_prob": True, "use_expert_bias": True, "routed_scaling_factor": 1.0}),
    "gpt2": (gpt2, {"n_embd": 24, "n_head": 3, "n_layer": 2, "n_inner": 40, "n_positions": 32,
                    "scale_attn_by_inverse_layer_idx": True, "vocab_size": 50, "layer_norm_epsilon": 1e-5}),
    "llama": (llama_like, {**LLAMA, "attention_bias": True, "mlp_bias": True,
                           "rope_scaling": LLAMA31, "rope_theta": 100.0}),
    "mistral": (llama_like, {**LLAMA, "sliding_window": 5, "head_dim": 6, "max_position_embeddings": 8,
                             "rope_scaling": {"type": "dynamic", "factor": 3.0}}),
    "qwen2": (llama_like, {**LLAMA, "use_sliding_window": True, "sliding_window": 4,
                           "max_window_layers": 1, "tie_word_embeddings": True}),
    # Sections of rotary positions count alike in texts.
    "qwen2_vl": (llama_like, {**LLAMA, "rope_scaling": {"type": "mrope", "mrope_section": [1, 1]}, "vision_start_token_id": 3,
                              "vision_config": {"depth": 1}}),
    "qwen3_vl_text": (llama_like, QWEN3_VL),
    "qwen3_vl_moe_text": (llama_like, {**QWEN3_VL, "model_type": "qwen3_vl_moe_text", "num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 12}),
    "qwen3_vl": (with_pictures_within, {"vocab_size": 50, "vision_config": {"hidden_size": 4}, "image_token_id": 3, "text_config": QWEN3_VL}),
    "qwen2_5_vl": (llama_like, {**LLAMA, "rope_scaling": {"rope_type": "default", "type": "default", "mrope_section": [1, 1]}}),
    "qwen2_5_vl_text": (llama_like, {**LLAMA, "rope_scaling": {"rope_type": "default", "type": "default", "mrope_section": [1, 1]}}),
    "qwen2_vl_text": (llama_like, {**LLAMA, "rope_scaling": {"rope_type": "default", "type": "default", "mrope_section": [1, 1]}}),
    "qwen3": (llama_like, {**LLAMA, "head_dim": 8, "rope_theta": 100.0,
                           "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "beta_fast": 2.0,
                                            "original_max_position_embeddings": 16}}),
    "gemma": (llama_like, GEMMA),
    "gemma2": (llama_like, {**GEMMA, "sliding_window": 5, "query_pre_attn_scalar": 12,
                            "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0}),
    "gemma2-listed": (llama_like, {**GEMMA, "sliding_window": 3, "layer_types": ["full_attention", "sliding_attention"],
                                   "attn_logit_softcapping": None, "final_logit_softcapping": None,
                                   "query_pre_attn_scalar": 8}),
    "gemma3_text": (llama_like, {**GEMMA, "num_hidden_layers": 3, "sliding_window": 3, "query_pre_attn_scalar": 12,
                                 "sliding_window_pattern": 2, "rope_local_base_freq": 10.0, "rope_theta": 1000.0,
                                 "rope_scaling": {"rope_type": "linear", "factor": 8.0}}),
    "gemma3_text-new": (llama_like, {**GEMMA, "sliding_window": 5, "query_pre_attn_scalar": 12, "dtype": "float32",
                                     "layer_types": ["sliding_attention", "full_attention"],
                                     "rope_parameters": {
                                         "full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 50.0},
                                         "sliding_attention": {"rope_type": "default", "rope_theta": 20.0}}}),
    "gemma3": (with_pictures, {"vocab_size": 50, "vision_config": {"hidden_size": 4}, "text_config": {
        **GEMMA, "model_type": "gemma3_text", "num_hidden_layers": 3, "sliding_window": 3, "query_pre_attn_scalar": 12,
        "sliding_window_pattern": 2, "rope_local_base_freq": 10.0, "rope_theta": 1000.0}}),
    "qwen3-listed": (llama_like, {**LLAMA, "head_dim": 8, "use_sliding_window": True, "sliding_window": 4,
                                  "max_window_layers": 2, "layer_types": ["sliding_attention", "full_attention"],
                                  "rope_parameters": {"rope_type": "default", "rope_theta": 30.0}}),
    "granite": (llama_like, {**LLAMA, "embedding_multiplier": 3.0, "residual_multiplier": 0.4,
                             "attention_multiplier": 0.2, "logits_scaling": 2.5}),
    "smollm3": (llama_like, {**LLAMA, "num_hidden_layers": 3, "no_rope_layers": [1, 0, 1], "use_sliding_window": False,
                             "layer_types": ["full_attention"] * 3, "rope_theta": 100.0}),
    "stablelm": (llama_like, {**without_rms(LLAMA), "layer_norm_eps": 1e-5, "use_qkv_bias": True, "head_dim": 4,
                              "partial_rotary_factor": 0.5}),
    "stablelm-parallel": (llama_like, {**without_rms(LLAMA), "layer_norm_eps": 1e-5, "head_dim": 8, "use_parallel_residual": True,
                                       "partial_rotary_factor": 0.5, "qk_layernorm": True}),
    "starcoder2": (llama_like, {**without_rms(LLAMA), "norm_epsilon": 1e-5, "use_bias": True, "sliding_window": 4,
                                "hidden_act": "gelu_pytorch_tanh"}),
    "olmo": (llama_like, {**without_rms(LLAMA), "clip_qkv": 1.5, "tie_word_embeddings": True}),
    "olmoe": (llama_like, {**LLAMA, "num_experts": 6, "num_experts_per_tok": 3, "norm_topk_prob": False, "clip_qkv": None}),
    "glm": (llama_like, {**LLAMA, "head_dim": 8, "partial_rotary_factor": 0.5}),
    "glm4": (llama_like, {**LLAMA, "head_dim": 8, "partial_rotary_factor": 0.5}),
    "cohere": (cohere, {**without_rms(LLAMA), "layer_norm_eps": 1e-5, "logit_scale": 0.3, "tie_word_embeddings": True,
                        "use_qk_norm": True}),
    "cohere2": (cohere, {**without_rms(LLAMA), "layer_norm_eps": 1e-5, "logit_scale": 0.3, "tie_word_embeddings": True,
                         "sliding_window": 4, "sliding_window_pattern": 2, "rotary_pct": 1.0}),
    "olmo2": (olmo2, {**LLAMA, "rope_theta": 100.0}),
    "phi": (phi, {**without_rms(LLAMA), "layer_norm_eps": 1e-5, "hidden_act": "gelu_new", "hidden_size": 48,
                  "partial_rotary_factor": 0.5, "qk_layernorm": True}),
    "gpt_neox": (gpt_neox, NEOX),
    "gpt_neox-serial": (gpt_neox, {**NEOX, "use_parallel_residual": False}),
    "phi3": (llama_like, {**LLAMA, "partial_rotary_factor": 0.5, "num_attention_heads": 3,
                          "num_key_value_heads": 1, "sliding_window": None,
                          "original_max_position_embeddings": 8,
                          "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.25],
                                           "long_factor": [1.5, 4.0]}}),
    "gpt_oss": (gpt_oss, {**LLAMA, "head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2, "attention_bias": True,
                          "sliding_window": 5, "layer_types": ["sliding_attention", "full_attention"], "swiglu_limit": 1.5,
                          "rope_theta": 150000, "initial_context_length": 8,
                          "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8,
                                           "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False}}),
    "gpt_oss-mxfp4": (gpt_oss, {**LLAMA, "hidden_size": 64, "intermediate_size": 32, "head_dim": 8, "num_local_experts": 3,
                                "num_experts_per_tok": 2, "attention_bias": True, "sliding_window": 5, "rope_theta": 10000,
                                "layer_types": ["sliding_attention", "full_attention"],
                                "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}}),
    "cwm": (newer, {**LLAMA, "head_dim": 8, "sliding_window": 5, "layer_types": ["full_attention", "sliding_attention"], "rope_theta": 1e4,
                    "rope_scaling": {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                     "original_max_position_embeddings": 16}}),
    "vaultgemma": (llama_like, {**GEMMA, "query_pre_attn_scalar": 10, "sliding_window": 5, "attn_logit_softcapping": 3.0,
                                "layer_types": ["sliding_attention", "full_attention"], "final_logit_softcapping": 4.0}),
    "hunyuan_v1_moe": (newer, {**LLAMA, "num_experts": 4, "moe_topk": 2, "head_dim": 8}),
    "minimax_m2": (newer, {**LLAMA, "num_local_experts": 4, "num_experts_per_tok": 2, "head_dim": 8, "rotary_dim": 4,
                           "partial_rotary_factor": 0.5, "rope_theta": 1e4, "use_qk_norm": True, "scoring_func": "sigmoid"}),
    "granitemoeshared": (newer, {**LLAMA, "num_local_experts": 4, "num_experts_per_tok": 2, "shared_intermediate_size": 20,
                                 "attention_multiplier": 0.3, "embedding_multiplier": 2.0, "logits_scaling": 3.0,
                                 "residual_multiplier": 0.7, "rope_theta": 1e4}),
    "biogpt": (biogpt, {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40, "vocab_size": 50,
                        "max_position_embeddings": 32, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "scale_embedding": True}),
    "phimoe": (phimoe, {**LLAMA, "num_local_experts": 4, "num_experts_per_tok": 2, "attention_bias": True, "lm_head_bias": True,
                        "router_jitter_noise": 0.2, "input_jitter_noise": 0.01, "sliding_window": 7, "rope_theta": 1e4}),
    "llama4_text": (llama4, {**LLAMA, "num_hidden_layers": 4, "head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2,
                             "intermediate_size": 20, "intermediate_size_mlp": 40, "moe_layers": [1, 3], "no_rope_layers": [1, 0, 1, 0],
                             "attention_chunk_size": 5, "use_qk_norm": True, "attn_temperature_tuning": True, "floor_scale": 3,
                             "attn_scale": 0.4, "attention_bias": False, "rope_theta": 1e4}),
    "llama4_text-plain": (llama4, {**LLAMA, "num_hidden_layers": 4, "head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 1,
                                   "intermediate_size": 20, "intermediate_size_mlp": 40, "moe_layers": [0, 1, 2, 3], "attn_scale": 0.4,
                                   "no_rope_layers": [1, 1, 1, 0], "attention_chunk_size": 64, "use_qk_norm": False,
                                   "attn_temperature_tuning": False, "floor_scale": 3, "rope_theta": 1e4}),
    "modernbert": (modernbert, {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 4, "num_attention_heads": 3,
                                "vocab_size": 50, "max_position_embeddings": 32, "norm_eps": 1e-5, "local_attention": 4,
                                "global_attn_every_n_layers": 3, "global_rope_theta": 160000.0, "local_rope_theta": 100.0,
                                "attention_bias": True, "mlp_bias": True, "hidden_activation": "gelu"}),
    "modernbert-tokens": (modernbert, {**MODERNBERT, "architectures": ["ModernBertForMaskedLM"]}),
    "mixtral": (llama_like, {**LLAMA, "num_local_experts": 4, "num_experts_per_tok": 2,
                             "sliding_window": None}),
    "qwen3_moe": (llama_like, {**LLAMA, "num_experts": 6, "num_experts_per_tok": 3,
                               "moe_intermediate_size": 16, "norm_topk_prob": False,
                               "head_dim": 8, "decoder_sparse_step": 1, "mlp_only_layers": [],
                               "use_sliding_window": True, "sliding_window": 5}),
    "qwen2_moe": (llama_like, {**LLAMA, "num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
                               "shared_expert_intermediate_size": 28, "norm_topk_prob": False, "mlp_only_layers": [0],
                               "decoder_sparse_step": 1}),
    "deepseek": (llama_like, {**LLAMA, "n_routed_experts": 6, "num_experts_per_tok": 3, "n_shared_experts": 2,
                              "moe_intermediate_size": 12, "norm_topk_prob": True, "first_k_dense_replace": 1,
                              "moe_layer_freq": 1, "scoring_func": "softmax", "aux_loss_alpha": 0.001, "seq_aux": True}),
    "deepseek_v2": (deepseek_v2, DEEPSEEK_V2),
    "deepseek_v2-compressed": (deepseek_v2, {**DEEPSEEK_V2, "q_lora_rank": 10, "v_head_dim": 12, "routed_scaling_factor": 2.5,
                                             "rope_scaling": None}),
    "deepseek_v2-groups": (deepseek_v2, {**DEEPSEEK_V2, "topk_method": "group_limited_greedy", "n_group": 3, "topk_group": 2,
                                         "routed_scaling_factor": 16.0}),
    "deepseek_v3": (deepseek_v2, DEEPSEEK_V3),
    "kimi_k2": (deepseek_v2, DEEPSEEK_V3),
    "mistral4": (deepseek_v2, MISTRAL4),
    "mistral4-apart": (deepseek_v2, {**MISTRAL4, "n_group": 1, "topk_group": 1, "num_experts_per_tok": 2, "first_k_dense_replace": 1}),
    "glm4_moe_lite": (deepseek_v2, {**DEEPSEEK_V3, "n_group": 1, "topk_group": 1, "rms_norm_eps": 1e-2, "rope_scaling": None, "v_head_dim": 12,
                                    "mlp_layer_types": ["dense", "sparse"]}),
    "deepseek_v3-fp8": (deepseek_v2, {**DEEPSEEK_V3, "quantization_config": {
        "activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [16, 10]}}),
    "qwen3-words": (llama_like, {**LLAMA, **CLASSES, "head_dim": 8, "architectures": ["Qwen3ForTokenClassification"]}),
    "bert-words": (bert, {**BERT, **CLASSES, "architectures": ["BertForTokenClassification"]}),
    "roberta-answers": (bert, {**BERT, "pad_token_id": 1, "architectures": ["RobertaForQuestionAnswering"]}),
    "qwen2-classes": (llama_like, {**LLAMA, **CLASSES, "tie_word_embeddings": True, "use_sliding_window": False,
                                   "architectures": ["Qwen2ForSequenceClassification"]}),
    "modernbert-classes": (modernbert, {**MODERNBERT, **CLASSES, "classifier_pooling": "mean", "architectures": ["ModernBertForSequenceClassification"]}),
    "llama-gptq": (llama_like, {**LLAMA, "quantization_config": {
        "bits": 4, "group_size": 8, "desc_act": True, "sym": False, "quant_method": "gptq"}}),
    "qwen2-gptq": (llama_like, {**LLAMA, "quantization_config": {
        "bits": 4, "group_size": -1, "desc_act": False, "checkpoint_format": "gptq_v2", "quant_method": "gptq"}}),
    "qwen2-gptq8": (llama_like, {**LLAMA, "quantization_config": {
        "bits": 8, "group_size": 8, "desc_act": True, "sym": True, "quant_method": "gptq"}}),
    "qwen3_moe-gptq": (llama_like, {**LLAMA, "num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 16, "norm_topk_prob": False,
                                    "head_dim": 8, "decoder_sparse_step": 1, "mlp_only_layers": [], "quantization_config": {
        "bits": 4, "group_size": 8, "desc_act": False, "sym": True, "quant_method": "gptq"}}),
    "llama-int8": (llama_like, {**LLAMA, "quantization_config": {
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 8, "strategy": "channel", "type": "int", "symmetric": True},
                                      "input_activations": {"num_bits": 8, "dynamic": True}}},
        "format": "int-quantized", "ignore": ["lm_head"], "kv_cache_scheme": None, "quant_method": "compressed-tensors"}}),
    "llama-awq": (llama_like, {**LLAMA, "quantization_config": {
        "bits": 4, "group_size": 8, "zero_point": True, "version": "gemm", "quant_method": "awq"}}),
    "llama-fp8": (llama_like, {**LLAMA, "quantization_config": {
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 8, "strategy": "channel", "type": "float"}}},
        "format": "float-quantized", "ignore": ["lm_head"], "kv_cache_scheme": None, "quant_method": "compressed-tensors"}}),
    "bert": (bert, BERT),
    "roberta": (bert, {**BERT, "pad_token_id": 1, "type_vocab_size": 1}),
    "xlm-roberta": (bert, {**BERT, "pad_token_id": 1, "type_vocab_size": 1}),
    "camembert": (bert, {**BERT, "pad_token_id": 1, "type_vocab_size": 1}),
    "electra": (bert, {**BERT, "embedding_size": 16}),
    "electra-wide": (bert, {**BERT, "embedding_size": 24}),
    "bert-tokens": (bert, {**BERT, "architectures": ["BertForMaskedLM"]}),
    "bert-classes": (bert, {**BERT, **CLASSES, "architectures": ["BertForSequenceClassification"]}),
    "roberta-tokens": (bert, {**BERT, "pad_token_id": 1, "type_vocab_size": 1, "architectures": ["RobertaForMaskedLM"]}),
    "roberta-classes": (bert, {**BERT, **CLASSES, "pad_token_id": 1, "architectures": ["RobertaForSequenceClassification"]}),
    "electra-tokens": (bert, {**BERT, "embedding_size": 16, "architectures": ["ElectraForMaskedLM"]}),
    "electra-classes": (bert, {**BERT, **CLASSES, "embedding_size": 16, "architectures": ["ElectraForSequenceClassification"]}),
    "ernie": (bert, {**BERT, "task_type_vocab_size": 3, "use_task_id": False}),
    "megatron-bert": (bert, {**BERT, "architectures": ["MegatronBertForMaskedLM"]}),
    "roberta-prelayernorm": (bert, {**BERT, "pad_token_id": 1}),
    "data2vec-text": (bert, {**BERT, "pad_token_id": 1, "architectures": ["Data2VecTextForMaskedLM"]}),
    "xlm-roberta-xl": (bert, {**BERT, "pad_token_id": 1, "layer_norm_eps": 1e-5, "architectures": ["XLMRobertaXLForMaskedLM"]}),
    "deberta": (deberta_v2, {**DEBERTA_1, "pos_att_type": ["c2p", "p2c"]}),
    "deberta-bare": (deberta_v2, {**DEBERTA_1, "relative_attention": False, "position_biased_input": True, "type_vocab_size": 2}),
    "deberta-v2": (deberta_v2, DEBERTA),
    "deberta-v2-own": (deberta_v2, {**DEBERTA, "position_buckets": -1, "norm_rel_ebd": "none", "share_att_key": False, "pos_att_type": ["c2p", "p2c"],
                                    "position_biased_input": True, "type_vocab_size": 2, "architectures": ["DebertaV2ForMaskedLM"]}),
    "deberta-v2-class": (deberta_v2, {**DEBERTA, **CLASSES, "pos_att_type": "c2p", "architectures": ["DebertaV2ForSequenceClassification"]}),
    "mpnet": (bert, {**BERT, "pad_token_id": 0, "relative_attention_num_buckets": 16, "architectures": ["MPNetForMaskedLM"]}),
    "albert": (albert, ALBERT),
    "albert-tokens": (albert, {**ALBERT, "architectures": ["AlbertForMaskedLM"]}),
    "eurobert": (eurobert, {**LLAMA, "architectures": ["EuroBertForMaskedLM"], "clf_pooling": "late", "rope_theta": 100.0}),
    "nomic_bert": (nomic_bert, {**BERT, "hidden_act": "silu", "rope_theta": 100.0,
                                "architectures": ["NomicBertForMaskedLM"]}),
    "esm": (esm, {**BERT, "pad_token_id": 1, "position_embedding_type": "rotary", "token_dropout": True, "mask_token_id": 32,
                  "rope_theta": 1e4, "architectures": ["EsmForMaskedLM"]}),
    "esm-placed": (esm, {**BERT, "pad_token_id": 1, "position_embedding_type": "absolute", "token_dropout": False,
                         "emb_layer_norm_before": True}),
    "distilbert-tokens": (distilbert, {**DISTILBERT, "architectures": ["DistilBertForMaskedLM"]}),
    "distilbert-classes": (distilbert, {**DISTILBERT, **CLASSES, "architectures": ["DistilBertForSequenceClassification"]}),
    "distilbert": (distilbert, DISTILBERT),
    "opt": (opt, {"hidden_size": 24, "ffn_dim": 40, "num_hidden_layers": 2, "num_attention_heads": 3, "vocab_size": 50,
                  "max_position_embeddings": 32, "word_embed_proj_dim": 24, "do_layer_norm_before": True,
                  "activation_function": "relu", "_remove_final_layer_norm": False, "layerdrop": 0.0}),
    "opt-350m": (opt, {"hidden_size": 24, "ffn_dim": 40, "num_hidden_layers": 2, "num_attention_heads": 3, "vocab_size": 50,
                       "max_position_embeddings": 32, "word_embed_proj_dim": 16, "do_layer_norm_before": False,
                       "activation_function": "relu"}),
    "xglm": (xglm, {"d_model": 24, "ffn_dim": 40, "num_layers": 2, "attention_heads": 3, "vocab_size": 50,
                    "max_position_embeddings": 32}),
    "gpt_neo": (gpt_neo, {"hidden_size": 24, "num_layers": 3, "num_heads": 3, "vocab_size": 50, "intermediate_size": None,
                          "max_position_embeddings": 32, "window_size": 4, "attention_types": [[["global", "local"], 1], [["global"], 1]],
                          "layer_norm_epsilon": 1e-5}),
    "gptj": (gptj, {"n_embd": 48, "n_layer": 2, "n_head": 3, "n_inner": None, "rotary_dim": 8, "vocab_size": 50,
                    "n_positions": 32, "layer_norm_epsilon": 1e-5, "rotary": True}),
    "codegen": (gptj, {"n_embd": 32, "n_layer": 2, "n_head": 8, "rotary_dim": 2, "vocab_size": 50, "n_positions": 32,
                       "layer_norm_epsilon": 1e-5}),
    "openai-gpt": (gpt2, {"n_embd": 24, "n_head": 3, "n_layer": 2, "n_positions": 32, "vocab_size": 50, "afn": "gelu",
                          "layer_norm_epsilon": 1e-5}),
    "olmo3": (newer, {**LLAMA, "sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"], "rope_parameters": {
        "full_attention": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 50.0, "original_max_position_embeddings": 16},
        "sliding_attention": {"rope_type": "default", "rope_theta": 50.0}}}),
    "exaone4": (newer, {**LLAMA, "sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"],
                        "sliding_window_pattern": "LG"}),
    "seed_oss": (newer, {**LLAMA, "head_dim": 8, "attention_bias": True, "attention_out_bias": False}),
    "ernie4_5": (newer, {**LLAMA, "head_dim": 6, "use_bias": True, "tie_word_embeddings": True, "rope_theta": 100.0}),
    "helium": (newer, {**LLAMA, "head_dim": 6, "attention_bias": True, "rope_theta": 100.0}),
    "hunyuan_v1_dense": (newer, {**LLAMA, "head_dim": 8, "rope_theta": 100.0}),
    "apertus": (newer, {**LLAMA, "hidden_act": "xielu", "head_dim": 8, "rope_theta": 100.0}),
    "ministral3": (newer, {**LLAMA, "head_dim": 8, "rope_parameters": {
        "rope_type": "default", "rope_theta": 100.0, "llama_4_scaling_beta": 0.7, "original_max_position_embeddings": 4}}),
    "jais2": (newer, {**without_rms(LLAMA), "hidden_act": "relu2", "layer_norm_eps": 1e-5, "head_dim": 8, "attention_bias": True,
                      "mlp_bias": True, "rope_theta": 100.0}),
    "flex_olmo": (newer, {**LLAMA, "num_experts": 4, "num_experts_per_tok": 2, "norm_topk_prob": False, "rope_theta": 100.0}),
    "arcee": (newer, {**LLAMA, "hidden_act": "relu2", "mlp_bias": True}),
    "nemotron": (newer, {**without_rms(LLAMA), "hidden_act": "relu2", "norm_eps": 1e-5, "head_dim": 8, "partial_rotary_factor": 0.5}),
    "persimmon": (newer, {**without_rms(LLAMA), "hidden_act": "relu2", "layer_norm_eps": 1e-5, "hidden_size": 48, "partial_rotary_factor": 0.5,
                          "rope_theta": 100.0}),
    "glm4_moe": (newer, {**LLAMA, **V3_EXPERTS, "head_dim": 8, "partial_rotary_factor": 0.5, "attention_bias": True,
                         "use_qk_norm": True, "norm_topk_prob": True}),
    "dots1": (newer, {**LLAMA, **V3_EXPERTS, "norm_topk_prob": False, "sliding_window": 4, "max_window_layers": 1,
                      "layer_types": ["full_attention", "sliding_attention"]}),
    "granitemoe": (newer, {**LLAMA, "embedding_multiplier": 3.0, "residual_multiplier": 0.4, "attention_multiplier": 0.2,
                           "logits_scaling": 2.5, "num_local_experts": 4, "num_experts_per_tok": 2}),
    "ernie4_5_moe": (newer, {**LLAMA, "rope_theta": 100.0, "tie_word_embeddings": True, "moe_num_experts": 6, "moe_k": 2,
                             "moe_intermediate_size": 12, "moe_num_shared_experts": 2, "moe_layer_start_index": 1}),
    "gpt_bigcode": (gpt_bigcode, {"n_embd": 24, "n_layer": 2, "n_head": 3, "n_inner": 40, "vocab_size": 50, "n_positions": 32,
                                  "multi_query": True, "layer_norm_epsilon": 1e-5}),
    "gpt_bigcode-heads": (gpt_bigcode, {"n_embd": 24, "n_layer": 1, "n_head": 3, "n_inner": 40, "vocab_size": 50,
                                        "n_positions": 32, "multi_query": False, "layer_norm_epsilon": 1e-5}),
    "falcon": (falcon, FALCON),
    "falcon-groups": (falcon, {**FALCON, "new_decoder_architecture": True, "num_kv_heads": 3, "bias": True}),
    "falcon-one-norm": (falcon, {**FALCON, "new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1}),
    "falcon-serial": (falcon, {**FALCON, "multi_query": False, "parallel_attn": False, "alibi": True, "bias": True}),
    "bloom": (bloom, {"hidden_size": 24, "n_layer": 2, "n_head": 3, "vocab_size": 50, "layer_norm_epsilon": 1e-5,
                      "seq_length": 32, "offset_alibi": 100, "skip_bias_add": True}),
    "mpt": (mpt, {"d_model": 24, "n_layers": 2, "n_heads": 4, "vocab_size": 50, "max_seq_len": 32, "no_bias": True, "expansion_ratio": 2,
                  "attn_config": {"alibi": True, "alibi_bias_max": 8, "clip_qkv": 1.5, "qk_ln": False, "attn_impl": "torch"}}),
    "nanochat": (nanochat, {**LLAMA, "num_key_value_heads": 2, "hidden_act": "relu2", "final_logit_softcapping": 3.0, "rope_theta": 100.0}),
    "dbrx": (dbrx, {"d_model": 24, "n_layers": 2, "n_heads": 4, "vocab_size": 50, "max_seq_len": 32,
                    "attn_config": {"clip_qkv": 1.5, "kv_n_heads": 2, "rope_theta": 500.0},
                    "ffn_config": {"ffn_hidden_size": 16, "moe_num_experts": 4, "moe_top_k": 2, "moe_jitter_eps": 0}}),
    "t5": (t5, T5),
    "mt5": (t5, {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    "umt5": (t5, {**T5, "num_decoder_layers": 2, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "scalable_attention": True}),
    "t5-gated": (t5, {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False,
                      "relative_attention_num_buckets": 16}),
    "t5-new": (t5, {**T5, "feed_forward_proj": "gated-gelu", "scale_decoder_outputs": False, "dtype": "float32"}),
    "t5-tied": (lambda w, c, *texts: t5(w, {**c, "head is the table": True}, *texts),
                {**T5, "feed_forward_proj": "gated-gelu", "scale_decoder_outputs": False}),
    "switch_transformers": (t5, {**T5, "num_layers": 4, "num_sparse_encoder_layers": 2, "num_decoder_layers": 2,
                                 "num_sparse_decoder_layers": 2, "num_experts": 4, "expert_capacity": 64,
                                 "encoder_sparse_step": 2, "decoder_sparse_step": 1, "router_bias": False,
                                 "router_dtype": "float32", "router_jitter_noise": 0.01}),
    "bart": (bart, {**BART, "normalize_before": False, "normalize_embedding": True, "add_final_layer_norm": False}),
    "plbart": (bart, {**BART, "scale_embedding": True}),
    "mbart": (bart, {**BART, "scale_embedding": True, "activation_function": "relu"}),
    "blenderbot": (bart, {**BART, "scale_embedding": True}),
    "blenderbot-small": (bart, {**BART, "scale_embedding": True, "layernorm_variant": "xlm", "do_blenderbot_90_layernorm": True}),
    "pegasus": (bart, {**BART, "scale_embedding": True, "activation_function": "relu"}),
    "marian": (bart, {**BART, "scale_embedding": True, "activation_function": "swish", "static_position_embeddings": True,
                      "decoder_vocab_size": 256, "share_encoder_decoder_embeddings": True}),
    "m2m_100": (bart, {**BART, "scale_embedding": True, "activation_function": "relu"}),
    "rwkv": (rwkv, {"hidden_size": 24, "attention_hidden_size": 20, "intermediate_size": 40, "num_hidden_layers": 2, "vocab_size": 50,
                    "context_length": 32, "layer_norm_epsilon": 1e-5, "rescale_every": 6, "tie_word_embeddings": False}),
    "bitnet": (llama_like, {**LLAMA, "hidden_act": "relu2", "rope_theta": 100.0}),
    "olmo_hybrid": (olmo_hybrid, OLMO_HYBRID),
    "olmo_hybrid-turns": (olmo_hybrid, {**OLMO_HYBRID, "linear_allow_neg_eigval": False, "rope_parameters": {
        "rope_type": "default", "rope_theta": 100.0}}),
    "whisper": (whisper, {"d_model": 24, "encoder_attention_heads": 3, "encoder_layers": 1,
                          "decoder_attention_heads": 2, "decoder_layers": 2, "encoder_ffn_dim": 40,
                          "decoder_ffn_dim": 36, "vocab_size": 50, "num_mel_bins": 5,
                          "max_source_positions": 8, "max_target_positions": 16}),
    "vit_msn": (vit, {**PICTURE, "layer_norm_eps": 1e-6, **SEVEN}),
    "ijepa": (vit, {**PICTURE, "layer_norm_eps": 1e-12, **SEVEN}),
    "data2vec-vision": (beit, {**PICTURE, **SEVEN, "use_relative_position_bias": True, "layer_scale_init_value": 0.1, "use_mean_pooling": True,
                               "layer_norm_eps": 1e-12, "vocab_size": 8192}),
    "wav2vec2": (wav2vec2, {**SOUND, "architectures": ["Wav2Vec2ForCTC"]}),
    "wav2vec2-stable": (wav2vec2, {**SOUND, **SEVEN, "do_stable_layer_norm": True, "feat_extract_norm": "layer", "conv_bias": True,
                                   "num_conv_pos_embeddings": 5, "architectures": ["Wav2Vec2ForSequenceClassification"]}),
    "hubert": (wav2vec2, {**SOUND, **SEVEN, "feat_proj_layer_norm": False, "architectures": ["HubertForSequenceClassification"]}),
    "audio-spectrogram-transformer": (spectrum, {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 3,
                                                 "layer_norm_eps": 1e-12, "patch_size": 4, "num_mel_bins": 11, "max_length": 18, "frequency_stride": 3,
                                                 "time_stride": 2, **SEVEN}),
    "wavlm": (wav2vec2, {**SOUND, **SEVEN, "num_buckets": 12, "max_bucket_distance": 8, "architectures": ["WavLMForSequenceClassification"]}),
    "wavlm-stable": (wav2vec2, {**SOUND, "num_buckets": 16, "max_bucket_distance": 20, "do_stable_layer_norm": True, "feat_extract_norm": "layer",
                                "architectures": ["WavLMForCTC"]}),
    "data2vec-audio": (wav2vec2, {**SOUND, "conv_pos_kernel_size": 5, "num_conv_pos_embeddings": 2, "architectures": ["Data2VecAudioModel"]}),
    "unispeech": (wav2vec2, {**SOUND, "architectures": ["UniSpeechForCTC"], "pad_token_id": 4, "ctc_loss_reduction": "mean", "ctc_zero_infinity": True}),
    "unispeech-sat": (wav2vec2, {**SOUND, **SEVEN, "architectures": ["UniSpeechSatForAudioFrameClassification"]}),
    "swin": (swin, {**SWIN, **SEVEN, "architectures": ["SwinForImageClassification"]}),
    "swin-filled": (swin, {**SWIN, **SEVEN, "image_size": 22, "window_size": 3, "architectures": ["SwinForImageClassification"]}),
    "donut-swin": (swin, {**SWIN, "window_size": 5, "architectures": ["DonutSwinModel"]}),
    "swinv2": (swin, {**SWIN, **SEVEN, "pretrained_window_sizes": [0, 3, 0], "architectures": ["Swinv2ForImageClassification"]}),
    "swinv2-filled": (swin, {**SWIN, **SEVEN, "image_size": 18, "pretrained_window_sizes": [6, 6, 3], "architectures": ["Swinv2ForImageClassification"]}),
    "vit_22b": (vit_22b, {**PICTURE, "layer_norm_eps": 1e-6, **SEVEN}),
    "deit": (vit, {**PICTURE, "layer_norm_eps": 1e-12, **SEVEN}),
    "vit": (vit, {**PICTURE, "layer_norm_eps": 1e-12, **SEVEN}),
    "beit": (beit, {**PICTURE, **SEVEN, "use_relative_position_bias": True, "layer_scale_init_value": 0.1, "use_mean_pooling": True,
                    "layer_norm_eps": 1e-12, "vocab_size": 8192}),
    "beit-first": (beit, {**PICTURE, **SEVEN, "use_relative_position_bias": False, "layer_scale_init_value": 0, "use_mean_pooling": False,
                          "use_absolute_position_embeddings": True}),
    "dinov3_vit": (dinov3, {**PICTURE, "num_register_tokens": 3, "use_gated_mlp": False, "rope_theta": 100.0, "hidden_act": "gelu"}),
    "dinov3_vit-gated": (dinov3, {**PICTURE, "num_register_tokens": 2, "use_gated_mlp": True, "rope_theta": 100.0, "hidden_act": "silu"}),
    "resnet": (resnet, RESNET),
    "resnet-basic": (resnet, {**RESNET, "layer_type": "basic", "downsample_in_first_stage": True, "image_size": 37}),
    "resnet-early": (resnet, {**RESNET, "downsample_in_bottleneck": True, "depths": [1, 1], "hidden_sizes": [16, 24]}),
    "convnext": (convnext, {**CONVNEXT, "layer_scale_init_value": 1e-6}),
    "convnextv2": (convnext, {**CONVNEXT, "image_size": 22}),
    "dinov2": (dinov2, {**PICTURE, **SEVEN, "mlp_ratio": 2, "use_swiglu_ffn": True, "layerscale_value": 1.0, "out_indices": [2]}),
    "dinov2_with_registers": (dinov2, {**PICTURE, **SEVEN, "mlp_ratio": 2, "use_swiglu_ffn": False, "num_register_tokens": 3}),
    "clip_text_model": (text_tower, {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 3, "vocab_size": 60,
                                     "max_position_embeddings": 20, "layer_norm_eps": 1e-5, "projection_dim": 10, "hidden_act": "quick_gelu",
                                     "architectures": ["CLIPTextModelWithProjection"]}),
    "clip_text_model-bare": (text_tower, {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 1, "num_attention_heads": 3, "vocab_size": 60,
                                          "max_position_embeddings": 20, "layer_norm_eps": 1e-5, "projection_dim": 10, "hidden_act": "quick_gelu",
                                          "architectures": ["CLIPTextModel"]}),
    "siglip_text_model": (text_tower, SIGLIP_TEXT),
    "siglip2_text_model": (text_tower, {**SIGLIP_TEXT, "pad_token_id": 0, "projection_size": 7}),
    "siglip2_vision_model": (tower, {**{key: value for key, value in PICTURE.items() if key != "image_size"}, "num_patches": 9, "layer_norm_eps": 1e-6}),
    "clip_vision_model": (tower, {**PICTURE, "projection_dim": 10, "architectures": ["CLIPVisionModelWithProjection"]}),
    "clip-classes": (tower, {**SEVEN, "architectures": ["CLIPForImageClassification"], "text_config": {"model_type": "clip_text_model"},
                             "vision_config": {**PICTURE, "model_type": "clip_vision_model", "projection_dim": 10}}),
    "clip": (tower, {"text_config": {"model_type": "clip_text_model"}, "logit_scale_init_value": 2.6592, "projection_dim": 10,
                     "vision_config": {**PICTURE, "model_type": "clip_vision_model", "projection_dim": 10}}),
    "siglip_vision_model": (tower, {**PICTURE, "layer_norm_eps": 1e-6}),
    "siglip-classes": (tower, {**SEVEN, "architectures": ["SiglipForImageClassification"], "model_type": "siglip_vision_model",
                               **PICTURE, "layer_norm_eps": 1e-6}),
}


def type_of(kind):
    """The model type of a variant, "t5" of "t5-new"."""
    return kind if kind in BERT_KIN or kind in ("openai-gpt", "blenderbot-small", "modernbert-decoder", "data2vec-vision", "data2vec-audio", "unispeech-sat", "donut-swin", "audio-spectrogram-transformer") else "deberta-v2" if kind.startswith("deberta-v2") else kind.split("-")[0]


def write_words(folder, vocabulary, begins, ends):
    """A tokenizer whose word w42 is token 42, with tokens of its own before or behind each text, or none (None)."""
    words = {f"w{i}": i for i in range(3, vocabulary)}
    around = {"<s>": begins, "</s>": ends}
    around = {word: token for word, token in around.items() if token is not None}
    ids = {word: {"id": word, "ids": [token], "tokens": [word]} for word, token in around.items()}
    single = [{"Sequence": {"id": "A", "type_id": 0}}]
    for word in around:
        single.insert(0 if word == "<s>" else 1, {"SpecialToken": {"id": word, "type_id": 0}})
    special = {"<pad>": 0, **around}
    added = [{"id": token, "content": word, "special": True, "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": False} for word, token in special.items()]
    with open(os.path.join(folder, "tokenizer.json"), "w") as file:
        json.dump({"version": "1.0", "added_tokens": added, "normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"},
                   "post_processor": {"type": "TemplateProcessing", "single": single, "pair": single, "special_tokens": ids},
                   "decoder": None,
                   "model": {"type": "WordLevel", "vocab": {**special, **words}, "unk_token": "<pad>"}}, file)


def experts_apart(tensors):
    """The tensors of all experts as one an expert, as transformers 5 saves some types."""
    parts = {}
    for name, value in tensors.items():
        if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            parts[name] = value
            continue
        p, which = name.rsplit(".", 1)
        for e, matrix in enumerate(value):
            halves = [("down_proj", matrix)] if which == "down_proj" else zip(("gate_proj", "up_proj"), matrix.chunk(2))
            parts.update({f"{p}.{e}.{n}.weight": part.contiguous() for n, part in halves})
    return parts


def write(folder, kind):
    compute, config = MODELS[kind]
    config = {"model_type": type_of(kind), **config}
    os.makedirs(folder, exist_ok=True)
    weights, generator = Weights(config.get("quantization_config"), kind == "bert-tokens"), torch.Generator().manual_seed(3)
    if compute in (vit, vit_22b, beit, dinov2, dinov3, tower, resnet, convnext, swin):
        side = config.get("image_size", PICTURE["image_size"])
        image = torch.randn(PICTURE["num_channels"], side, side, generator=generator)
        logits = compute(weights, config, image)
        numpy.save(os.path.join(folder, "in-image.npy"), image[None].numpy().astype("float32"))
        numpy.save(os.path.join(folder, "in-labels.npy"), numpy.zeros(1, "int32"))
    elif compute == spectrum:
        sound = torch.randn(config["max_length"], config["num_mel_bins"], generator=generator)
        logits = compute(weights, config, sound)
        numpy.save(os.path.join(folder, "in-sound.npy"), sound[None].numpy().astype("float32"))
        numpy.save(os.path.join(folder, "in-labels.npy"), numpy.zeros(1, "int32"))
    elif compute == wav2vec2:
        samples = LENGTH
        for taps, stride in zip(config["conv_kernel"][::-1], config["conv_stride"][::-1]):
            samples = (samples - 1) * stride + taps
        sound = torch.randn(2, samples, generator=generator).to(torch.float32).to(torch.float64)
        logits = compute(weights, config, sound[0])
        # Texts that do not fill their rows, in one a token twice; classes of places, or of all.
        labels = [[3, 3, 5, 1, 3, -1], [7, -1, -1, -1, -1, -1]] if tells(config, "ForCTC") else [[0] * LENGTH] * 2
        labels = numpy.array(labels, "int32")[:, 0 if len(logits) == 1 else slice(None)]
        for name, examples in (("in", 1), ("two", 2)):
            numpy.save(os.path.join(folder, name + "-sound.npy"), sound[:examples].numpy().astype("float32"))
            numpy.save(os.path.join(folder, name + "-labels.npy"), labels[:examples])
    elif kind == "whisper":
        sound = torch.randn(config["num_mel_bins"], 2 * config["max_source_positions"],
                            generator=generator)
        tokens = torch.randint(config["vocab_size"], (LENGTH + 1,), generator=generator)
        logits = compute(weights, config, sound, tokens[:LENGTH])
        numpy.save(os.path.join(folder, "in-sound.npy"), sound[None].numpy().astype("float32"))
        numpy.save(os.path.join(folder, "in-tokens.npy"), tokens.numpy().astype("int32"))
    elif any(tells(config, what) for what in ("CLIPTextModel", "CLIPTextModelWithProjection", "SiglipTextModel", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")):
        # A label, or where an answer is, and a text, whose first token begins texts of bytes; a text of one class does not
        # fill its row.
        left, labels = (4, "1") if tells(config, "ForSequenceClassification") or compute == text_tower else (1, "0 5" if tells(config, "ForQuestionAnswering") else "2")
        text = bytes(torch.randint(40, 50, (LENGTH - left,), generator=generator).tolist())
        logits = compute(weights, config, torch.tensor([2, *text]))
        with open(os.path.join(folder, "in-text.tsv"), "wb") as file:
            file.write(labels.encode() + b"\t" + text + b"\n")
        write_words(folder, config["vocab_size"], 2, None)
        with open(os.path.join(folder, "words.tsv"), "w") as file:
            file.write((" ".join("2" * len(text)) if labels == "2" else labels) + "\t" + " ".join(f"w{byte}" for byte in text) + "\n")
    else:
        tokens = torch.randint(config["vocab_size"], (LENGTH + 1,), generator=generator)
        logits = compute(weights, config, tokens[:LENGTH])
        numpy.save(os.path.join(folder, "in-tokens.npy"), tokens.numpy().astype("int32"))
    if compute in (t5, bart):
        write_words(folder, config["vocab_size"], None, config["eos_token_id"])
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file)
    tensors = weights.published()
    write_model(folder, experts_apart(tensors) if kind.endswith("-apart") else tensors, kind in SHARDED)
    numpy.save(os.path.join(folder, "logits.npy"), logits.numpy())


def compare(run, folder):
    """Whether every example's logits are those of the model to 1e-4 of the largest."""
    wanted = numpy.load(os.path.join(folder, "logits.npy"))
    got = numpy.load(run)
    apart = abs(got - wanted).max() / abs(wanted).max()
    print(f"{apart:.2e} apart")
    return got.shape[1:] == wanted.shape and apart < 1e-4


def read_safetensors(folder):
    tensors = {}
    for path in glob.glob(os.path.join(folder, "*.safetensors")):
        with open(path, "rb") as file:
            data = file.read()
        length = struct.unpack("<Q", data[:8])[0]
        for name, entry in json.loads(data[8:8 + length]).items():
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                tensors[name] = (entry["dtype"], entry["shape"],
                                 data[8 + length + begin:8 + length + end])
    return tensors


def same(folder, written):
    """Whether what was written back is the model's, byte by byte; what reads pictures is not written."""
    own = {name: t for name, t in read_safetensors(folder).items() if not name.startswith(("vision_tower.", "model.visual.", "model.vision_model."))}
    return own == read_safetensors(written)


def all_read(folder, out):
    """Leaves a file beside each model whose logits are alike, and one where the weights written to OUT are."""
    for model in sorted(os.path.dirname(path) for path in glob.glob(os.path.join(folder, "*", "got.npy"))):
        for alike, name in ((compare(os.path.join(model, "got.npy"), model), "logits-alike"),
                            (same(model, os.path.join(model, out)), "weights-alike")):
            if alike:
                open(os.path.join(model, name), "w").close()
    return True


def aligned(folder, *metrics):
    """Whether runs' first losses and lengths of gradients are those of PyTorch's CTC of the folder's sound and labels, which those below 0
    fill up."""
    compute, config, weights = kept(folder, folder)
    weights.tensors = {name: value.requires_grad_() for name, value in weights.tensors.items()}
    sound, labels = (numpy.load(os.path.join(folder, name)) for name in ("two-sound.npy", "two-labels.npy"))
    shares = torch.stack([torch.log_softmax(compute(weights, config, torch.tensor(one, dtype=torch.float64)), -1) for one in sound])
    texts = [torch.tensor(row[row >= 0], dtype=torch.int64) for row in labels]
    loss = torch.nn.functional.ctc_loss(shares.transpose(0, 1), torch.cat(texts), torch.full((len(sound),), shares.shape[1]),
                                        torch.tensor([len(text) for text in texts]), blank=config["pad_token_id"],
                                        reduction=config["ctc_loss_reduction"], zero_infinity=config.get("ctc_zero_infinity", False))
    loss.backward()
    length = math.sqrt(sum(float((value.grad ** 2).sum()) for value in weights.tensors.values() if value.grad is not None))
    alike = True
    for path in metrics:
        with open(path) as file:
            first = json.loads(file.readline())
        print(first["loss"], float(loss), first["gradient_norm"], length)
        alike = alike and abs(first["loss"] / float(loss) - 1) < 1e-5 and abs(first["gradient_norm"] / length - 1) < 1e-4
    return alike


def values_of(tensor):
    return numpy.frombuffer(tensor[2], "<f4").reshape(tensor[1]).astype("f8")


def adapted(folder, adapter, merged):
    """Whether MERGED is FOLDER with the adapters of ADAPTER, in PEFT's names, added in."""
    with open(os.path.join(adapter, "adapter_config.json")) as file:
        config = json.load(file)
    before, after = read_safetensors(folder), read_safetensors(merged)
    down = {n: values_of(t) for n, t in read_safetensors(adapter).items() if "lora_A" in n}
    up = {n: values_of(t) for n, t in read_safetensors(adapter).items() if "lora_B" in n}
    changed = 0
    for name, tensor in before.items():
        whole = name if name.startswith(("model.", "transformer.")) else "transformer." + name
        key = "base_model.model." + whole.replace(".weight", ".lora_A.weight")
        if key not in down:
            if after[name] != tensor:
                return False
            continue
        change = config["lora_alpha"] / config["r"] * up[key.replace("lora_A", "lora_B")] @ down[key]
        change = change.T if config["fan_in_fan_out"] else change
        changed += 1
        if abs(change).max() == 0 or abs(values_of(tensor) + change - values_of(after[name])).max() > 1e-6:
            return False
    print(f"{changed} changed, of {len(before)}")
    return changed == len(down) == len(up) > 0


def eighth(tensor):
    """A matrix [out, in] as int8 with a scale a row says it."""
    scale = tensor.abs().amax(1, keepdim=True).to(torch.float32).to(torch.float64) / 127
    scale = scale.to(torch.float32).to(torch.float64)
    return (tensor / scale).round() * scale


def kept(folder, weights_of):
    """How the model of a folder computes, its config, and the weights of another one."""
    kind = os.path.basename(folder)
    compute, config = MODELS[kind]
    weights = Weights()
    weights.tensors = {name: torch.tensor(values_of(t)) for name, t in read_safetensors(weights_of).items()}
    return compute, {"model_type": type_of(kind), **config}, weights


def made(folder, source, most):
    """What a model makes of a source, a token after the other, the highest each time. Of bytes 2 begins a text and 3 ends it, and a source too; of the
    words of write_words what the config says."""
    compute, config, weights = kept(folder, folder)
    words = source.startswith("w")
    begin, end = (config["decoder_start_token_id"], config["eos_token_id"]) if words else (2, 3)
    read = [int(word[1:]) for word in source.split()] if words else [*source.encode()]
    said = [begin]
    while len(said) <= most and (len(said) == 1 or said[-1] != end):
        said.append(int(compute(weights, config, torch.tensor(said), torch.tensor([*read, end]))[-1].argmax()))
    said = [token for token in said[1:] if token != end]
    if words:
        return " ".join(f"w{token}" for token in said if token > 2).encode()
    return bytes(32 if byte < 32 or byte == 127 else byte for byte in said)


def made_all(path, most):
    """Renames what models are said to have made (a line each: the file, the model's folder, its sources) where it is not
    what they make, a line for each source; one that is not there is wrong, too."""
    with open(path) as lines:
        asked = [line.rstrip("\n").split("\t") for line in lines]
    for said, folder, *sources in asked:
        wanted = b"".join(made(folder, source, most) + b"\n" for source in sources)
        with open(said, "rb") as file:
            if file.read() != wanted:
                os.rename(said, said + ".wrong")
    return len(asked) > 0


def is_behind(run, prompt, weights_in, folder, weights_of=None):
    """Whether a run's logits, one row a token that follows the prompt, the highest each time, are
    those of the model, perhaps with the weights of another folder, products' weights perhaps in eight bits."""
    global PROMPT
    PROMPT = len(prompt)
    compute, config, weights = kept(folder, weights_of or folder)
    for name, value in weights.tensors.items():
        if weights_in == "int8" and value.dim() == 2 and "embed" not in name:
            weights.tensors[name] = eighth(value)
    got = numpy.load(run)[0]
    tokens = [ord(c) for c in prompt] + [int(row.argmax()) for row in got[:-1]]
    wanted = compute(weights, config, torch.tensor(tokens)).numpy()[-len(got):]
    apart = abs(got - wanted).max() / abs(wanted).max()
    print(f"{apart:.2e} apart in {run}")
    return apart < 1e-4


def of_bytes(config):
    """The config with a vocabulary that holds every byte, to be trained on any text."""
    if not isinstance(config, dict):
        return config
    return {key: 256 if key.startswith("vocab_size") or key == "decoder_vocab_size" else of_bytes(value) for key, value in config.items()}


def write_configs(folder, kinds):
    """A config.json for each of these kinds, or for all whose weights can be trained."""
    for kind in kinds or [kind for kind in MODELS if "quantization_config" not in MODELS[kind][1]]:
        os.makedirs(os.path.join(folder, kind))
        with open(os.path.join(folder, kind, "config.json"), "w") as file:
            json.dump(of_bytes({"model_type": type_of(kind), **MODELS[kind][1]}), file)
    return True


def rename_wrong(path, is_right):
    """Renames the runs of a list that are wrong; one that is not there is wrong, too."""
    with open(path) as lines:
        runs = [line.rstrip("\n").split("\t") for line in lines]
    for run, *rest in runs:
        if os.path.exists(run) and not is_right(run, *rest):
            os.rename(run, run + ".wrong")
    return len(runs) > 0


def main():
    command, folder, *rest = sys.argv[1:]
    if command == "write":
        standard = [kind for kind in MODELS if "quantization_config" not in MODELS[kind][1] and kind not in GENERATED_ALONE]
        for kind in [kind for kind in rest if kind in MODELS] or standard:
            write(os.path.join(folder, kind), kind)
            print(kind)
        return True
    if command == "configs":
        return write_configs(folder, rest)
    if command == "compare":
        return rename_wrong(folder, compare)
    if command == "made":
        return made_all(folder, int(rest[0]))
    if command == "adapted":
        return adapted(folder, *rest)
    if command == "behind":
        return rename_wrong(folder, is_behind)
    if command == "aligned":
        return aligned(folder, *rest)
    if command == "all-read":
        return all_read(folder, rest[0])
    return same(folder, rest[0])


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
