# SPDX-License-Identifier: GPL-3.0-or-later
"""The strategy that PaSE found for its Transformer on 8 devices (baidu-research/PaSE, benchmarks/transformer.py, strategy
1), as a layout of our training graph: pase_transformer.py PLAN LAYOUT reads any plan of it.

Attention lies on 4x2, its batch over rows and its heads over columns. The stream around it, the perceptrons and the
output lie on all 8 devices alike: features, hidden units and words are divided, what a product reads is gathered before
it and stays so. The decoder's stream is moved before its first attention and back behind its second. What goes back is
divided as what went forward, and sums are scattered at once, which is better than Mesh-TensorFlow can do.
"""
import json
import sys

AXES = ("rows", "cols")
STREAM = ("d_model", "d_ff", "vocab")
WEIGHTS = {"whidden": "d_ff", "wout": "d_model", "head": "vocab"}  # what is divided of them in the stream

graph = json.load(open(sys.argv[1]))["graph"]
last = max(op.get("iteration", 0) for op in graph["operations"])


def domains(name):
    """Where a tensor of the forward pass is computed, and where it is kept."""
    part = name.split("/")
    attends = part[0] in ("encoder_norm", "source_mask") or part[0] == "decoder" and part[2] in ("attention", "cross")
    if part[0] == "encoder" and part[2] == "attention":
        attends = part[3] not in ("x", "before")
    computed = "attention" if attends else "stream"
    if part[-3:] == ["ffn", "before", "norm"] or part[-2:] in (["ffn", "relu"], ["decoder_norm", "norm"]):
        return computed, "whole"
    if part[0] == "encoder" and part[2:] == ["attention", "before", "norm"]:
        return computed, "attention"
    if part[0] == "decoder" and part[2:] == ["cross", "x"]:
        return computed, "stream"
    if name in (f"encoder/{last}/ffn/x", "target/x_placed") or \
            part[0] == "decoder" and part[2:] == ["ffn", "x"] and part[1] != str(last):
        return computed, "attention"
    return computed, computed


def where(name):
    head, _, rest = name.partition("/")
    if head == "grad":  # goes the other way
        computed, kept = domains(rest)
        return ("stream" if kept == "whole" else kept), computed
    return domains(rest if head in ("back", "update") else name)


def place(domain, name, dims):
    if domain == "attention":
        return ["batch" if "batch" in dims else None, "heads" if "heads" in dims else None]
    divided = [d for d in dims if d in STREAM] if domain == "stream" else []
    dim = WEIGHTS.get(name.split("/")[-1]) or (divided[-1] if divided else None)
    return [dim if dim in divided else None] * 2


shape = {t["name"]: t["dims"] for t in graph["inputs"] + graph["variables"]}
variables = {t["name"] for t in graph["variables"]}
kept = {name: place(where(name)[1], name, dims) for name, dims in shape.items()}
strategies = {}


def results(op):
    """Names and dimensions of what an operation makes."""
    name, inputs = op["name"], op["inputs"]
    first = shape[inputs[0]] if inputs else []
    if op["op"] == "attention":
        return [(name, first), (name + "/lse", [d for d in first if d != op["dimension"]])]
    if op["op"] == "attention_grad":
        return [(name + suffix, shape[inputs[k]]) for k, suffix in enumerate(("", "/k", "/v"))]
    if op["op"] == "rename":
        return [(name, [op["to"] if d == op["from"] else d for d in first])]
    return [(name, op.get("dims", first))]


def strategy(op):
    """An operation divides what its weights do, else what its result does where it is computed, else what it reads."""
    name, inputs = op["name"], op["inputs"]
    over = set(shape[name]).union(*(shape[i] for i in inputs))
    weights = [kept[i] for i in inputs if i in variables and op["op"] == "einsum"]
    wanted = weights + [place(where(name)[0], name, shape[name])] + [kept[i] for i in inputs]
    return [next((w[a] for w in wanted if w[a] in over), "duplicated") for a in range(2)]


for op in graph["operations"]:
    for name, dims in results(op):
        shape[name] = dims
        kept[name] = place(where(name)[1], name, dims)
    if op["op"] == "sgd":
        kept[op["name"]] = kept[op["inputs"][0]]
    strategies[op["name"]] = strategy(op)

json.dump({"mesh": "rows:4;cols:2", "layout": {
    "rules": None,
    "tensors": {name: dict(zip(AXES, (dim or "replicated" for dim in dims))) for name, dims in kept.items() if any(dims)},
    "operations": {name: dict(zip(AXES, dims)) for name, dims in strategies.items()}}}, open(sys.argv[2], "w"))
