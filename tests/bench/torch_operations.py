#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Operations and families beside PyTorch. Run by bench_operations.sh.

    torch_operations.py FORMATS FOLDER     FORMATS: layouts/FORMATS.md, whose table says which operations there are

A case is a graph whose operands are variables that both sides begin with, so there are no data to agree on.
Its loss is the sum of the results times fixed weights, and of x^2 / 2 of every operand. After one step of SGD
with momentum our checkpoint holds each gradient as the momentum and each result as a frozen variable.

A family is the graph of its tiny preset; its inputs become frozen variables, and so does what it draws at
random. Compared are every gradient of the first step, and the losses of STEPS steps of SGD with momentum.

Optimizers train a perceptron for STEPS steps, beside torch.optim, or their papers' formulas in PyTorch.

    f32, f64     largest |ours - PyTorch's| / max(1, largest |PyTorch's|), in both precisions; PyTorch in f64
    torch f32    of families, the same of PyTorch's own f32: where a network makes rounding grow so that this is
                 near the limit (Inception, 94 batch norms over 4 examples), ours may be ten times as far, and
                 losses count up to the step at which PyTorch's two precisions have parted

Where a ReLU's input is all but 0, one of the two may fall on its other side; PyTorch's own f32 is 2e-2 off its
f64 in the gradient of t5's encoder/0/ffn/whidden, which looks like that.

The rate of a family is RATE over its largest gradient, so that steps are of one size.
"""
import glob
import json
import math
import os
import re
import struct
import subprocess
import sys

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy
import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from torch_graph import Graph, Named, unrolled
from weights_file import write_weights

LIMITS = {"f32": 1e-5, "f64": 1e-12}
FAMILY_LIMITS = {"f32": 1e-4, "f64": 1e-10}
STEPS, RATE = 5, 0.01
ONLY = os.environ.get("BENCH_CASES", "")
SIZES = {"a": 4, "b": 3, "c": 5, "d": 6, "e": 2, "n": 7, "m": 7, "k": 3, "g": 2, "one": 1, "dozen": 12}
TYPES = {"F32": ("<f4", 4), "F64": ("<f8", 8), "I32": ("<i4", 4)}


# ---- Running ours ----------------------------------------------------------------------------------

def read_weights(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    header, arrays = json.loads(data[8:8 + n]), {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = (8 + n + at for at in entry["data_offsets"])
            arrays[name] = numpy.frombuffer(data[begin:end], TYPES[entry["dtype"]][0]).reshape(entry["shape"])
    return arrays


def call(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise RuntimeError(" ".join(command) + ":\n" + "\n".join(done.stdout.splitlines()[-3:]))


def run_ours(folder, graph, weights, precision, steps):
    """The variables of the checkpoint after the first step, and the losses of all."""
    path = lambda name: os.path.join(folder, name)
    json.dump(graph, open(path("g.json"), "w"))
    write_weights(path("w.safetensors"), weights, "F64")
    call(["rm", "-rf", path("run")])
    call(["meshtf-plan", "search", path("g.json"), "--mesh", "a:1", "--precision", precision, "-o", path("p.json")])
    call(["meshtf-run", path("p.json"), "--init", path("w.safetensors"), "--steps", str(steps), "--metrics", path("m.json"),
          "--checkpoint", path("run"), "--checkpoint-every", "1", "--keep", str(steps)])
    losses = [json.loads(line)["loss"] for line in open(path("m.json")) if '"loss"' in line]
    return read_weights(path("run/step-00000001.safetensors")), losses


def differ(ours, theirs):
    theirs = theirs.detach().numpy() if isinstance(theirs, torch.Tensor) else numpy.asarray(theirs)
    if not theirs.size:
        return 0
    return float(numpy.abs(ours - theirs).max() / max(1, numpy.abs(theirs).max()))


# ---- Operations ------------------------------------------------------------------------------------

class Case:
    """`x` operands: name -> (dims, low, high) of uniform floats, or (dims, "ids", count); `op` the operation."""

    def __init__(self, name, x, op, sizes=None, more=(), results=("",), loops=()):
        self.name, self.x, self.op, self.more, self.results, self.loops = name, x, op, more, results, loops
        self.sizes = {**SIZES, **(sizes or {})}

    def check(self, folder):
        return check_case(self, folder)

    def draw(self):
        random = numpy.random.default_rng(sum(map(ord, self.name)))
        arrays, ids = {}, []
        for name, (dims, low, high) in self.x.items():
            shape = [self.sizes[d] for d in dims]
            if low == "ids":
                arrays[name] = random.integers(-1 if high < 0 else 0, abs(high), shape).astype("float64")
                ids.append(name)
            else:
                arrays[name] = random.uniform(low, high, shape).astype("float32").astype("float64")
        return arrays, ids

    def graph(self, ids):
        variables, operations = [], []
        for name, (dims, low, _) in self.x.items():
            whole = {"name": name + "/float" if name in ids else name, "dims": list(dims), "init": "zeros"}
            variables.append({**whole, "frozen": True} if name in ids else whole)
            if name in ids:
                operations.append({"name": name, "op": "cast", "inputs": [name + "/float"], "dtype": "int32"})
        operations += list(self.more)
        operations.append({"name": "r", "inputs": [i for i in self.x if not any(i in m["inputs"] for m in self.more)], **self.op})
        used = sorted({d for v in variables for d in v["dims"]} | set(dims_in(operations)))
        graph = {"meshtf_graph": 1, "name": "case", "dimensions": {d: self.sizes[d] for d in used}, "inputs": [],
                 "variables": variables, "operations": operations, "optimizer": {"kind": "momentum", "rate": 0.125}}
        return {**graph, "loops": list(self.loops)} if self.loops else graph


def dims_in(operations):
    for o in operations:
        yield from o.get("dims", [])
        for key in ("from", "to", "dimension", "experts", "capacity", "choices", "keys"):
            if isinstance(o.get(key), str):
                yield o[key]
        for w in o.get("windows", []):
            yield from (w[key] for key in ("from", "to", "kernel") if key in w)


def with_loss(case, graph, values, arrays):
    """Results kept in frozen variables and summed with weights; the graph, and PyTorch's loss."""
    random, terms, loss = numpy.random.default_rng(7), [], 0
    for number, suffix in enumerate(case.results):
        value, tensor = values["r" + suffix], "r" + suffix
        keep, weight = {"dims": list(value.dims), "init": "zeros", "frozen": True}, random.uniform(-1, 1, value.t.shape)
        graph["variables"] += [{**keep, "name": f"out/{number}"}, {**keep, "name": f"weight/{number}"}]
        arrays[f"out/{number}"], arrays[f"weight/{number}"] = numpy.zeros(value.t.shape), weight.astype("float32").astype("float64")
        if not value.t.is_floating_point():
            graph["operations"].append({"name": f"cast/{number}", "op": "cast", "inputs": [tensor], "dtype": "float32"})
            tensor = f"cast/{number}"
        graph.setdefault("updates", []).append({"variable": f"out/{number}", "value": tensor})
        graph["operations"].append({"name": f"term/{number}", "op": "einsum", "inputs": [tensor, f"weight/{number}"], "dims": []})
        terms.append(f"term/{number}")
        loss = loss + (value.t.to(torch.float64) * torch.from_numpy(arrays[f"weight/{number}"])).sum()
    for v in list(graph["variables"]):
        if not v.get("frozen"):
            name = v["name"] + "/square"
            graph["operations"].append({"name": name, "op": "einsum", "inputs": [v["name"], v["name"]], "dims": []})
            graph["operations"].append({"name": name + "/half", "op": "scale", "inputs": [name], "factor": 0.5})
            terms.append(name + "/half")
            loss = loss + (values[v["name"]].t ** 2).sum() / 2
    graph["operations"].append({"name": "loss", "op": "add", "inputs": terms + ([] if len(terms) > 1 else terms), "dims": []})
    graph["loss"] = "loss"
    return loss


def check_case(case, folder):
    """Largest differences of results and gradients: {precision: (results, gradients)}."""
    arrays, ids = case.draw()
    graph = case.graph(ids)
    values = {}
    for name, array in arrays.items():
        t = torch.from_numpy(array)
        values[name + "/float" if name in ids else name] = Named(t if name in ids else t.requires_grad_(), case.x[name][0])
    Graph(graph, torch.float64).run(values)
    named = {name + "/float" if name in ids else name: array for name, array in arrays.items()}
    # Without an operand that is trained there is none to step; give it one.
    if not any(not v.get("frozen") for v in graph["variables"]):
        graph["variables"].append({"name": "spare", "dims": [], "init": "ones"})
        named["spare"] = numpy.ones([])
        values["spare"] = Named(torch.ones([], dtype=torch.float64, requires_grad=True), ())
    loss = with_loss(case, graph, values, named)
    loss.backward()
    found = {}
    for precision in LIMITS:
        after, _ = run_ours(folder, graph, named, precision, 1)
        results = max(differ(after[f"out/{k}"], values["r" + suffix].t) for k, suffix in enumerate(case.results))
        trained = [v["name"] for v in graph["variables"] if not v.get("frozen")]
        found[precision] = (results, max(differ(after["momentum/v/" + v], values[v].t.grad) for v in trained))
    return found


class Drawn(Case):
    """What is drawn at random has a distribution, and the gradient that goes with what was drawn."""

    def __init__(self, op, attributes):
        inputs = {"inputs": []} if op != "dropout" else {}
        super().__init__(op, {"x": (("many",), 0.5, 2)}, {"op": op, "dims": ["many"], **attributes, **inputs}, {"many": 40000})

    def check(self, folder):
        """How far the distribution is from what it should be at most; and gradients as everywhere."""
        arrays, _ = self.draw()
        graph = self.graph([])
        x = torch.from_numpy(arrays["x"])
        with_loss(self, graph, {"x": Named(x, ("many",)), "r": Named(x, ("many",))}, arrays)
        found = {}
        for precision in LIMITS:
            after, _ = run_ours(folder, graph, arrays, precision, 1)
            r, gradient = after["out/0"].astype("float64"), arrays["x"]
            if self.op["op"] == "dropout":
                kept, rate = r != 0, self.op["rate"]
                gradient = gradient + kept * arrays["weight/0"] / (1 - rate)
                far = abs(kept.mean() - (1 - rate)) + 1e3 * differ(r, kept * arrays["x"] / (1 - rate))
            else:
                far = self.farthest(numpy.sort(r))
            # Kolmogorov's statistic of so many draws is above this once in a thousand times.
            found[precision] = (0 if far < 1.95 / math.sqrt(len(r)) else far, differ(after["momentum/v/x"], gradient))
        return found

    def farthest(self, drawn):
        low, span = self.op.get("low", 0), self.op.get("high", 1) - self.op.get("low", 0)
        cumulative = (drawn - low) / span
        if self.op["op"] == "random_normal":
            scaled = torch.from_numpy((drawn - self.op["mean"]) / self.op["deviation"])
            cumulative = ((1 + torch.erf(scaled / math.sqrt(2))) / 2).numpy()
        return float(numpy.abs(cumulative - (numpy.arange(len(drawn)) + 0.5) / len(drawn)).max())


class Dropping(Case):
    """Attention that drops shares: which, is shown by one of the same stream, whose values are one feature each."""

    def shown(self, kept):
        """The graph with both, their variables, and what PyTorch makes of it where `kept` (all where None) is what is kept."""
        arrays, _ = self.draw()
        dims = self.x["k"][0]
        arrays["each"] = numpy.broadcast_to(numpy.eye(self.sizes["m"]).reshape(1, self.sizes["m"], 1, -1), arrays["k"].shape).copy()
        graph = self.graph([])
        graph["variables"] += [{"name": "each", "dims": list(dims), "init": "zeros", "frozen": True},
                               {"name": "shares", "dims": list(self.x["q"][0]), "init": "zeros", "frozen": True}]
        graph["operations"].append({"name": "show", "inputs": ["q", "k", "each"], **self.op})
        graph["updates"] = [{"variable": "shares", "value": "show"}]
        values = {name: Named(torch.from_numpy(array).requires_grad_(name != "each"), self.x.get(name, (dims,))[0])
                  for name, array in arrays.items()}
        torch_graph = Graph(graph, torch.float64)
        torch_graph.kept = kept
        torch_graph.run(values)
        arrays["shares"] = numpy.zeros(arrays["q"].shape)
        return graph, arrays, values, with_loss(self, graph, values, arrays)

    def check(self, folder):
        found = {}
        for precision in LIMITS:
            graph, arrays, _, _ = self.shown(None)
            after, _ = run_ours(folder, graph, arrays, precision, 1)
            kept = torch.from_numpy(after["shares"] != 0)
            dropped = 1 - kept.double().mean().item()
            _, _, values, loss = self.shown(kept.double())
            loss.backward()
            far = 0 if abs(dropped - self.op["dropout"]) < 0.1 else dropped
            found[precision] = (far + differ(after["out/0"], values["r"].t),
                                max(differ(after["momentum/v/" + v], values[v].t.grad) for v in "qkv"))
        return found


def cases():
    yield from elementwise_cases()
    yield from reduction_cases()
    yield from shape_cases()
    yield from index_cases()
    yield from attention_cases()
    yield from window_cases()


def elementwise_cases():
    ab, bc = ("a", "b"), ("b", "c")
    positive = {"log", "sqrt", "rsqrt", "reciprocal"}
    for op in ("relu gelu gelu_exact silu tanh sigmoid exp log sqrt rsqrt square negate abs sign logical_not softplus "
               "sin cos erf floor ceil reciprocal stop_gradient").split():
        yield Case(op, {"x": (ab, 0.3 if op in positive else -2, 2)}, {"op": op})
        yield Case(op + " of many", {"x": (("n", "dozen"), 0.3 if op in positive else -6, 6)}, {"op": op}, {"n": 37})
    yield Case("softplus far out", {"x": (ab, -60, 60)}, {"op": "softplus"})
    yield Case("scale", {"x": (ab, -2, 2)}, {"op": "scale", "factor": -1.75})
    for exponent in (2, 0.5, -1.5, 3):
        yield Case(f"power {exponent}", {"x": (ab, 0.3, 2)}, {"op": "power", "exponent": exponent})
    yield Case("power 3 of negative", {"x": (ab, -2, 2)}, {"op": "power", "exponent": 3})
    yield Case("clip", {"x": (ab, -2, 2)}, {"op": "clip", "low": -0.5, "high": 1})
    for op in ("leaky_relu", "elu"):
        yield Case(op, {"x": (ab, -2, 2)}, {"op": op})
        yield Case(op + " 0.3", {"x": (ab, -2, 2)}, {"op": op, "slope": 0.3})
    for op in "add subtract multiply divide maximum minimum pow mod".split():
        low = 0.3 if op in ("divide", "pow", "mod") else -2
        yield Case(op, {"x": (ab, low, 2), "y": (ab, low, 2)}, {"op": op})
        yield Case(op + " broadcast", {"x": (ab, low, 2), "y": (bc, low, 2)}, {"op": op, "dims": ["c", "a", "b"]})
    yield Case("mod of negative", {"x": (ab, -5, 5), "y": (ab, 0.5, 2)}, {"op": "mod"})
    yield Case("mod int32", {"x": (ab, "ids", -40), "y": (ab, "ids", 5)}, {"op": "mod"})
    yield Case("add of four", {"x": (ab, -2, 2), "y": (bc, -2, 2), "z": (("a",), -2, 2), "u": ((), -2, 2)},
               {"op": "add", "dims": ["a", "b", "c"]})
    for op in "equal not_equal less less_equal greater greater_equal".split():
        yield Case(op, {"x": (ab, "ids", 3), "y": (ab, "ids", 3)}, {"op": op})
        yield Case(op + " float", {"x": (ab, -1, 1), "y": (bc, -1, 1)}, {"op": op, "dims": ["a", "b", "c"]})
    for op in "logical_and logical_or logical_xor".split():
        yield Case(op, {"x": (ab, "ids", 2), "y": (ab, "ids", 2)}, {"op": op})
    yield Case("where", {"x": (ab, "ids", 2), "y": (ab, -2, 2), "z": (ab, -2, 2)}, {"op": "where", "inputs": ["truth", "y", "z"]},
               more=[{"name": "truth", "op": "cast", "inputs": ["x"], "dtype": "float32"}])
    yield Case("where broadcast", {"x": (("a",), "ids", 2), "y": (("b",), -2, 2), "z": (("c",), -2, 2)},
               {"op": "where", "inputs": ["truth", "y", "z"], "dims": ["a", "b", "c"]},
               more=[{"name": "truth", "op": "cast", "inputs": ["x"], "dtype": "float32"}])
    for name, formula in {"": "x * sigmoid(y) + 0.5 * max(x, 0)", " of many": "-x ^ 2 / (3 - y) + where(x < y, exp(x), erf(y) - min(x, y))"}.items():
        yield Case("expression" + name, {"x": (ab, -2, 2), "y": (bc, -2, 2)},
                   {"op": "expression", "expression": formula, "dims": ["a", "b", "c"]})
    yield Case("in_train_phase", {"x": (ab, -2, 2), "y": (ab, -2, 2)}, {"op": "in_train_phase"})
    yield Case("constant", {"x": (ab, -2, 2)}, {"op": "constant", "inputs": [], "dims": ["a", "b"], "value": 1.5})
    yield Case("range", {"x": (ab, -2, 2)}, {"op": "range", "inputs": [], "dims": ["n"], "dtype": "float32"})
    for op, attributes in (("dropout", {"rate": 0.3}), ("random_uniform", {"low": -1, "high": 3}), ("random_normal", {"mean": 2, "deviation": 0.5})):
        yield Drawn(op, attributes)
    yield Case("cast", {"x": (ab, -9, 9)}, {"op": "cast", "dtype": "int32"})


def reduction_cases():
    abc = ("a", "b", "c")
    for op in "reduce_sum reduce_mean reduce_max reduce_min reduce_prod log_sum_exp".split():
        for dims in (["a"], ["c", "a"], ["b"], []):
            yield Case(f"{op} to {' '.join(dims) or 'a number'}", {"x": (abc, -2, 2)}, {"op": op, "dims": dims})
    for op in ("reduce_any", "reduce_all"):
        yield Case(op, {"x": (abc, "ids", 2)}, {"op": op, "dims": ["a", "b"], "inputs": ["truth"]},
                   more=[{"name": "truth", "op": "cast", "inputs": ["x"], "dtype": "float32"}])
    yield Case("argmax", {"x": (abc, -2, 2)}, {"op": "argmax", "dims": ["c", "a"]})
    yield Case("variance", {"x": (abc, -2, 2), "y": (("b",), -2, 2)}, {"op": "variance", "dims": ["b"]})
    for name, dims in (("", ["a", "b", "c"]), (" middle", ["a", "b", "c"])):
        along = "b" if name else "c"
        yield Case("softmax" + name, {"x": (abc, -3, 3)}, {"op": "softmax", "dimension": along})
        yield Case("layer_norm" + name, {"x": (abc, -3, 3), "s": ((along,), -2, 2)}, {"op": "layer_norm", "dimension": along})
        yield Case("layer_norm with bias" + name, {"x": (abc, -3, 3), "s": ((along,), -2, 2), "h": ((along,), -2, 2)},
                   {"op": "layer_norm", "dimension": along, "epsilon": 0.01})
        yield Case("rms_norm" + name, {"x": (abc, -3, 3), "s": ((along,), -2, 2)}, {"op": "rms_norm", "dimension": along})
    statistics = [{"name": "mean", "op": "reduce_mean", "inputs": ["x"], "dims": ["b"]},
                  {"name": "variance", "op": "variance", "inputs": ["x", "mean"], "dims": ["b"]}]
    for bias in ((), ("h",)):
        yield Case("normalize, batch norm" + " with bias" * len(bias), {"x": (abc, -3, 3), "s": (("b",), -2, 2), **{h: (("b",), -2, 2) for h in bias}},
                   {"op": "normalize", "inputs": ["x", "mean", "variance", "s", *bias], "epsilon": 1e-5}, more=statistics)
    groups = [{"name": "mean", "op": "reduce_mean", "inputs": ["x"], "dims": ["a", "b"]},
              {"name": "variance", "op": "variance", "inputs": ["x", "mean"], "dims": ["a", "b"]}]
    yield Case("normalize, group norm", {"x": (("a", "b", "c", "d"), -3, 3), "s": (("b", "c"), -2, 2), "h": (("b", "c"), -2, 2)},
               {"op": "normalize", "inputs": ["x", "mean", "variance", "s", "h"], "epsilon": 1e-5}, more=groups)
    for exclusive in (0, 1):
        for reverse in (0, 1):
            yield Case(f"cumulative_sum {exclusive} {reverse}", {"x": (abc, -2, 2)},
                       {"op": "cumulative_sum", "dimension": "b", "exclusive": exclusive, "reverse": reverse})
        yield Case(f"cumulative_sum in blocks {exclusive}", {"x": (("a", "dozen", "c"), -2, 2)},
                   {"op": "cumulative_sum", "dimension": "dozen", "exclusive": exclusive, "blocks": 4})
    for op in ("cumulative_max", "cumulative_min", "cumulative_log_sum_exp"):
        for reverse in (0, 1):
            yield Case(f"{op} {reverse}", {"x": (("a", "n", "c"), -2, 2)}, {"op": op, "dimension": "n", "reverse": reverse})
    for size in (5, 3):
        yield Case(f"local_response_norm {size}", {"x": (("a", "n", "c"), -2, 2)},
                   {"op": "local_response_norm", "dimension": "n", "size": size, "alpha": 0.5, "bias": 2})
    yield Case("einsum, product", {"x": (("a", "b"), -1, 1), "y": (("b", "c"), -1, 1)}, {"op": "einsum", "dims": ["c", "a"]})
    yield Case("einsum, batches", {"x": (("a", "b", "d"), -1, 1), "y": (("d", "a", "c"), -1, 1)}, {"op": "einsum", "dims": ["c", "a", "b"]})
    yield Case("einsum, three", {"x": (("a", "b"), -1, 1), "y": (("b", "c"), -1, 1), "z": (("c", "a", "d"), -1, 1)}, {"op": "einsum", "dims": ["d", "a"]})
    yield Case("einsum, four to a number", {"x": (("a", "b"), -1, 1), "y": (("b",), -1, 1), "z": (("a",), -1, 1), "u": ((), -1, 1)}, {"op": "einsum", "dims": []})
    for attributes in ({}, {"smoothing": 0.1}, {"z_loss": 0.01}, {"smoothing": 0.2, "z_loss": 0.1}):
        name = " ".join(attributes)
        yield Case("softmax_cross_entropy " + name, {"x": (abc, -3, 3), "y": (("a", "b"), "ids", 5)},
                   {"op": "softmax_cross_entropy", "dims": ["a", "b"], **attributes})
        yield Case("softmax_cross_entropy masked " + name, {"x": (abc, -3, 3), "y": (("a", "b"), "ids", 5), "z": (("b", "a"), 0, 1)},
                   {"op": "softmax_cross_entropy", "dims": ["b", "a"], **attributes})
        yield Case("softmax_cross_entropy ignoring " + name, {"x": (abc, -3, 3), "y": (("a", "b"), "ids", -5)},
                   {"op": "softmax_cross_entropy", "dims": ["a", "b"], "ignore": 1, **attributes})


def shape_cases():
    abc = ("a", "b", "c")
    x = {"x": (abc, -2, 2)}
    yield Case("rename", x, {"op": "rename", "from": "b", "to": "k"})
    yield Case("transpose", x, {"op": "transpose", "dims": ["c", "a", "b"]})
    yield Case("reshape, merging", x, {"op": "reshape", "dims": ["dozen", "c"]})
    yield Case("reshape, dividing", {"x": (("dozen", "c"), -2, 2)}, {"op": "reshape", "dims": ["a", "k", "c"]})
    for name, attributes in {"": {"start": 1}, " strided": {"start": 1, "stride": 2}, " dilated": {"start": -1, "dilation": 2},
                             " outside": {"start": -2, "stride": 2}, " far": {"start": 4}}.items():
        yield Case("resample" + name, {"x": (("a", "n", "b"), -2, 2)}, {"op": "resample", "from": "n", "to": "d", **attributes})
    yield Case("resample wrapped", {"x": (("a", "n", "b"), -2, 2)}, {"op": "resample", "from": "n", "to": "m", "start": 5, "wrap": 1})
    yield Case("slice", {"x": (("a", "n", "b"), -2, 2)}, {"op": "slice", "from": "n", "to": "k", "start": 2})
    yield Case("slice strided", {"x": (("a", "n", "b"), -2, 2)}, {"op": "slice", "from": "n", "to": "k", "start": 1, "stride": 2})
    yield Case("pad", {"x": (abc, -2, 2)}, {"op": "pad", "from": "b", "to": "n", "before": 3})
    yield Case("pad with 2.5", {"x": (abc, -2, 2)}, {"op": "pad", "from": "b", "to": "n", "before": 1, "value": 2.5})
    yield Case("reverse", x, {"op": "reverse", "dimension": "b"})
    for shift in (2, -1, 17):
        yield Case(f"roll {shift}", x, {"op": "roll", "dimension": "c", "shift": shift})
    yield Case("select", x, {"op": "select", "dims": ["a", "c"], "dimension": "b", "index": 2})
    yield Case("stack", {"x": (("a", "b"), -2, 2), "y": (("a", "b"), -2, 2), "z": (("a", "b"), -2, 2)}, {"op": "stack", "dims": ["a", "k", "b"]})
    yield Case("concat", {"x": (("a", "b"), -2, 2), "y": (("a", "c"), -2, 2), "z": (("a",), -2, 2)}, {"op": "concat", "dims": ["a", "all"]}, {"all": 9})
    yield Case("broadcast", {"x": (("b",), -2, 2)}, {"op": "broadcast", "dims": ["a", "b", "c"]})
    yield Case("one_hot", {"x": (("a", "b"), "ids", 6)}, {"op": "one_hot", "dims": ["a", "d", "b"], "dtype": "float32"})
    for reverse in (False, True):
        inside = [{"op": "loop_slice", "inputs": ["x"], "dimension": "n", "name": "now"},
                  {"op": "rename", "inputs": ["state"], "from": "a", "to": "f", "name": "before"},
                  {"op": "einsum", "inputs": ["before", "w"], "dims": ["a"], "name": "product"},
                  {"op": "add", "inputs": ["now", "product"], "dims": ["a"], "name": "sum"},
                  {"op": "tanh", "inputs": ["sum"], "name": "next"},
                  {"op": "loop_stack", "inputs": ["next"], "dimension": "n", "name": "all"},
                  {"op": "loop_next", "inputs": ["state", "next"], "name": "last"}]
        yield Case("loop" + " reversed" * reverse, {"x": (("n", "a"), -1, 1), "h": (("a",), -1, 1), "w": (("f", "a"), -1, 1)},
                   {"op": "add", "inputs": ["all", "last"], "dims": ["n", "a"]}, {"f": 4},
                   more=[{"op": "loop_begin", "inputs": ["h"], "name": "state"}] + [{**o, "loop": "steps"} for o in inside],
                   loops=[{"name": "steps", "dimension": "n", **({"reverse": True} if reverse else {})}])


def index_cases():
    yield Case("embedding", {"x": (("d", "b"), -2, 2), "y": (("a", "c"), "ids", 6)}, {"op": "embedding", "dims": ["a", "c", "b"]})
    yield Case("gather", {"x": (("a", "d", "b"), -2, 2), "y": (("a", "c"), "ids", 6)}, {"op": "gather", "dims": ["a", "c", "b"]})
    yield Case("scatter_add", {"y": (("a", "c"), "ids", 6), "x": (("a", "c", "b"), -2, 2)}, {"op": "scatter_add", "dims": ["a", "d", "b"]})
    yield Case("scatter_add with more", {"y": (("a", "c"), "ids", 6), "x": (("a", "c", "b"), -2, 2), "z": (("d", "b"), -2, 2)},
               {"op": "scatter_add", "dims": ["d", "b"]})
    yield Case("top_k", {"x": (("a", "n", "b"), -2, 2)}, {"op": "top_k", "from": "n", "to": "k"}, results=("", "/index"))
    yield Case("top_k, sorting", {"x": (("a", "n"), -2, 2)}, {"op": "top_k", "from": "n", "to": "m"}, results=("", "/index"))
    for reverse in (0, 1):
        yield Case(f"sort {reverse}", {"x": (("a", "n", "b"), -2, 2)}, {"op": "sort", "dimension": "n", "reverse": reverse}, results=("", "/index"))
    choice, gate = (("a", "n", "e"), "ids", 3), (("a", "n", "e"), 0, 1)
    for queue in (0, 1):
        for priority in (0, 1, 2):
            for capacity in ({"capacity": "c"}, {"capacity": "k"}, {}):
                named = {"op": "slots", "dimension": "n", "choices": "e", "experts": "b", "queue": queue, "priority": priority, **capacity}
                if priority:
                    yield Case(f"slots {queue} {priority} {' '.join(capacity.values())}", {"x": choice, "g": gate}, named)
                else:
                    yield Case(f"slots {queue} 0 {' '.join(capacity.values())}", {"x": choice}, named)
    slot = {"name": "slot", "op": "slots", "inputs": ["x"], "dimension": "n", "choices": "e", "experts": "b", "capacity": "c"}
    yield Case("slot_ids", {"x": choice}, {"op": "slot_ids", "inputs": ["x", "slot"], "dims": ["a", "b", "c"]}, more=[slot])
    yield Case("dispatch", {"x": choice, "y": (("a", "n", "d"), -2, 2)}, {"op": "dispatch", "inputs": ["y", "slot"], "dims": ["b", "a", "c", "d"]}, more=[slot])
    yield Case("dispatch with gates", {"x": choice, "y": (("a", "n", "d"), -2, 2), "g": gate},
               {"op": "dispatch", "inputs": ["y", "slot", "g"], "dims": ["b", "a", "c", "d"]}, more=[slot])
    yield Case("combine", {"x": choice, "y": (("b", "a", "c", "d"), -2, 2)}, {"op": "combine", "inputs": ["y", "slot"], "dims": ["a", "n", "d"]}, more=[slot])
    yield Case("combine with gates", {"x": choice, "y": (("b", "a", "c", "d"), -2, 2), "g": gate},
               {"op": "combine", "inputs": ["y", "slot", "g"], "dims": ["a", "n", "d"]}, more=[slot])
    yield Case("expert_einsum", {"x": (("n", "d"), -2, 2), "w": (("b", "d", "c"), -2, 2), "y": (("n",), "ids", -3)},
               {"op": "expert_einsum", "dims": ["n", "c"], "experts": "b"})


def attention_cases():
    q, k = ("a", "n", "g", "d"), ("a", "m", "g", "d")
    operands = {"q": (q, -2, 2), "k": (k, -2, 2), "v": (k, -2, 2)}
    common = {"op": "attention", "query": "n", "memory": "m", "dimension": "d", "factor": 0.4}
    for name, attributes in {"": {}, " causal": {"causal": 1}, " softcap": {"softcap": 1.5}, " causal softcap": {"causal": 1, "softcap": 1.5},
                             " window": {"causal": 1, "window": 3}}.items():
        yield Case("attention" + name, operands, {**common, **attributes})
        if "window" not in name:
            yield Case("attention, bias" + name, {**operands, "bias": (("g", "n", "m"), -2, 2)}, {**common, **attributes})
            yield Case("attention, two biases" + name, {**operands, "bias": (("g", "n", "m"), -2, 2), "more": (("n", "m"), -2, 2)},
                       {**common, **attributes})
        yield Case("attention, shared keys" + name, {**operands, "k": (("a", "m", "d"), -2, 2), "v": (("a", "m", "d"), -2, 2)}, {**common, **attributes})
    yield Dropping("attention, dropout", operands, {**common, "dropout": 0.3, "stream": "dropped"}, {"n": 9, "m": 8, "d": 8})
    yield Case("attention, long", operands, {**common, "causal": 1}, {"n": 150, "m": 150, "d": 16, "a": 2})
    operands = {"v": (("a", "n", "g", "d"), -2, 2), "q": (("a", "n", "c"), -1, 1), "k": (("a", "n", "c"), -0.5, 0.5), "log": (("a", "n", "g"), -2, 0)}
    for name, more in {"": {}, " corrected": {"beta": (("a", "n", "g"), 0, 1)}}.items():
        for size in (7, 150):
            yield Case(f"linear_attention of {size}{name}", {**operands, **more}, {"op": "linear_attention", "dimension": "n", "keys": "c"}, {"n": size, "a": 2})
    yield Case("linear_attention of 150 in blocks", operands, {"op": "linear_attention", "dimension": "n", "keys": "c", "blocks": 6}, {"n": 150, "a": 2})
    scanned = {**{name: operands[name] for name in "vqk"}, "step": (("a", "n", "g", "d"), 0, 1), "rate": (("c", "d"), -2, 0)}
    yield Case("selective_scan", scanned, {"op": "selective_scan", "dimension": "n", "keys": "c"}, {"n": 70, "a": 2})
    yield Case("causal_mask", {"x": (("a", "n", "m"), -2, 2)}, {"op": "softmax", "inputs": ["masked"], "dimension": "m"},
               more=[{"name": "masked", "op": "causal_mask", "inputs": ["x"], "query": "n", "memory": "m"}])
    x, common = {"x": (("a", "n", "g", "d"), -2, 2)}, {"op": "rotary", "position": "n", "dimension": "d"}
    for name, attributes in {"": {}, " adjacent": {"adjacent": 1}, " partial": {"rotated": 4}, " partial adjacent": {"rotated": 4, "adjacent": 1},
                             " base": {"base": 100, "angle": 0.5, "gain": 1.25},
                             " llama3": {"base": 50, "context": 64, "stretch": 8, "low": 1, "high": 4},
                             " yarn": {"base": 50, "context": 64, "stretch": 4, "low": 0.5, "high": 2, "ramp": 1}}.items():
        yield Case("rotary" + name, x, {**common, **attributes})
    yield Case("rotary from", {**x, "p": (("a",), "ids", 50)}, common)


def window_cases():
    """(input size, kernel, stride, dilation, before, after) by axis."""
    shapes = {"3": [(9, 3, 1, 1, 1, 1)], "strided": [(9, 3, 2, 1, 1, 0)], "dilated": [(11, 3, 1, 3, 2, 1)], "even": [(8, 2, 2, 1, 0, 0)],
              "uneven": [(10, 4, 3, 2, 3, 2)], "sparse": [(9, 1, 3, 1, 0, 0)], "rectangle": [(7, 3, 1, 1, 1, 1), (9, 5, 2, 1, 2, 2)],
              "square": [(8, 3, 1, 1, 1, 1), (8, 3, 1, 1, 1, 1)], "cube": [(5, 3, 1, 1, 1, 1), (4, 2, 2, 1, 0, 0), (6, 3, 2, 1, 1, 1)]}
    for name, axes in shapes.items():
        sizes, windows, transposed = {"ci": 4, "co": 6, "g": 2}, [], []
        for i, (size, kernel, stride, dilation, before, after) in enumerate(axes):
            out = (size + before + after - (kernel - 1) * dilation - 1) // stride + 1
            sizes.update({f"s{i}": size, f"o{i}": out, f"k{i}": kernel})
            w = {"from": f"s{i}", "to": f"o{i}", "stride": stride, "dilation": dilation, "before": before}
            windows.append(w)
            transposed.append({**w, "from": f"o{i}", "to": f"s{i}", "kernel": f"k{i}"})
        s, o, k = ([f"{letter}{i}" for i in range(len(axes))] for letter in "sok")
        kernels = [{**w, "kernel": f"k{i}"} for i, w in enumerate(windows)]
        pools = [{**w, "size": a[1]} for w, a in zip(windows, axes)]
        x = (("a", "ci", *s), -1, 1)
        yield Case("conv " + name, {"x": x, "f": (("co", "ci", *k), -1, 1)}, {"op": "conv", "dims": ["a", "co", *o], "windows": kernels}, sizes)
        yield Case("conv, channels last " + name, {"x": (("a", *s, "ci"), -1, 1), "f": ((*k, "ci", "co"), -1, 1)},
                   {"op": "conv", "dims": ["a", *o, "co"], "windows": kernels}, sizes)
        yield Case("conv, depthwise " + name, {"x": x, "f": (("ci", *k), -1, 1)}, {"op": "conv", "dims": ["a", "ci", *o], "windows": kernels}, sizes)
        yield Case("conv, groups " + name, {"x": (("a", "g", "ci", *s), -1, 1), "f": (("g", "co", "ci", *k), -1, 1)},
                   {"op": "conv", "dims": ["a", "g", "co", *o], "windows": kernels}, sizes)
        yield Case("conv_transpose " + name, {"x": (("a", "ci", *o), -1, 1), "f": (("ci", "co", *k), -1, 1)},
                   {"op": "conv_transpose", "dims": ["a", "co", *s], "windows": transposed}, sizes)
        yield Case("conv_transpose, groups " + name, {"x": (("a", "g", "ci", *o), -1, 1), "f": (("g", "ci", "co", *k), -1, 1)},
                   {"op": "conv_transpose", "dims": ["a", "g", "co", *s], "windows": transposed}, sizes)
        yield Case("conv_filter_grad " + name, {"x": x, "y": (("a", "co", *o), -1, 1)},
                   {"op": "conv_filter_grad", "dims": ["co", "ci", *k], "windows": kernels}, sizes)
        yield Case("max_pool " + name, {"x": x}, {"op": "max_pool", "dims": ["a", "ci", *o], "windows": pools}, sizes, results=("", "/index"))
        yield Case("average_pool " + name, {"x": x}, {"op": "average_pool", "dims": ["a", "ci", *o], "windows": pools}, sizes)
        yield Case("average_pool, padding counted " + name, {"x": x}, {"op": "average_pool", "dims": ["a", "ci", *o], "windows": pools, "counted": 1}, sizes)


# ---- Families --------------------------------------------------------------------------------------

def families():
    """All that there are, which an unknown one is told."""
    told = subprocess.run(["meshtf-plan", "model", "none-such", "-o", os.devnull], stderr=subprocess.PIPE, text=True).stderr
    return told.split("there are ")[1].strip().split(", ")


COUNTS = {"tokens": 256, "next_tokens": 256, "source": 256, "segments": 3, "source_segments": 3, "places": 16, "source_places": 16, "labels": 2}


def given(graph):
    """Inputs, and what is drawn, as frozen variables; names of them that hold integers."""
    operations, variables, ids = [], [], {}
    for i in graph["inputs"]:
        whole = {"name": i["name"] + "/given", "dims": i["dims"], "init": "zeros", "frozen": True}
        variables.append(whole)
        integer = i.get("dtype") == "int32"
        if integer:
            ids[whole["name"]] = min(COUNTS.get(i["feed"], 5), graph["dimensions"].get("vocab", 256))
        operations.append({"name": i["name"], "op": "cast", "inputs": [whole["name"]], "dtype": "int32"} if integer else
                          {"name": i["name"], "op": "scale", "inputs": [whole["name"]], "factor": 1})
    for o in graph["operations"]:
        if o.get("op") == "dropout":
            ids[o["name"] + "/given"] = 2
            variables.append({"name": o["name"] + "/given", "dims": o.get("dims") or o["like"], "init": "zeros", "frozen": True})
            o = {"name": o["name"], "op": "multiply", "inputs": [o["inputs"][0], o["name"] + "/given"], "dims": o.get("dims") or o["like"]}
        if o.get("op") == "random_normal":
            variables.append({"name": o["name"] + "/given", "dims": o["dims"], "init": "zeros", "frozen": True})
            o = {"name": o["name"], "op": "scale", "inputs": [o["name"] + "/given"], "factor": 1}
        if o.get("op") == "random_uniform":
            low, high = o.get("low", 0), o.get("high", 1)
            variables.append({"name": o["name"] + "/given", "dims": o["dims"], "init": {"uniform": (high - low) / 2}, "frozen": True})
            o = {"name": o["name"], "op": "expression", "inputs": [o["name"] + "/given"], "arguments": "x", "expression": f"x + {(low + high) / 2}"}
        operations.append(o)
    return {**graph, "inputs": [], "variables": graph["variables"] + variables, "operations": operations,
            "optimizer": {"kind": "momentum", "rate": RATE, "momentum": 0.9}}, ids


def network_graph(path):
    """As `given`, without blocks; and as it is written, for us."""
    written = json.load(open(path))
    return (*given(unrolled(written)), given(written)[0])


def family_graph(family, folder):
    if family.endswith(".json"):
        return network_graph(family)
    path = os.path.join(folder, "family.json")
    call(["meshtf-plan", "model", family, "--preset", "tiny", "-o", path])
    graph = json.load(open(path))
    for o in graph["operations"]:
        if o["op"] == "dropout" and "dims" not in o:
            o["like"] = next(p for p in graph["operations"] if p["name"] == o["inputs"][0])["dims"]
    graph, ids = given(graph)
    return graph, ids, graph


def begin(graph, ids):
    random, arrays = numpy.random.default_rng(3), {}
    sizes = graph["dimensions"]
    for v in graph["variables"]:
        shape, init = [sizes[d] for d in v["dims"]], v["init"]
        if v["name"] in ids:
            array = random.integers(0, ids[v["name"]], shape)
        elif isinstance(init, dict) and "normal" in init:
            array = random.normal(0, init["normal"], shape)
        elif isinstance(init, dict) and "uniform" in init:
            array = random.uniform(-init["uniform"], init["uniform"], shape)
        elif v["name"].endswith("/given"):
            array = random.normal(0, 1, shape)
        elif isinstance(init, dict):
            array = numpy.full(shape, init["constant"])
        else:
            # Off their beginnings, so that no gradient is zero by chance; running statistics stay.
            array = numpy.full(shape, 1.0 if init == "ones" else 0.0)
            array = array if v.get("frozen") else array + random.uniform(-0.1, 0.1, shape)
        arrays[v["name"]] = numpy.asarray(array, "float32").astype("float64")
    return arrays


def train_theirs(graph, arrays, dtype=torch.float64, rate=None):
    """Gradients of the first step (None: nothing leads there), what it assigns, and the losses of all steps."""
    weights, velocity, first, losses = {}, {}, None, []
    for v in graph["variables"]:
        weights[v["name"]] = torch.from_numpy(arrays[v["name"]].copy()).to(dtype)
    trained = [v["name"] for v in graph["variables"] if not v.get("frozen")]
    dims = {v["name"]: v["dims"] for v in graph["variables"]}
    for _ in range(STEPS):
        for name in trained:
            weights[name] = weights[name].detach().requires_grad_()
        values = Graph(graph, dtype).run({n: Named(t, dims[n]) for n, t in weights.items()})
        loss = values[graph["loss"]].t
        losses.append(float(loss.detach()))
        gradients = dict(zip(trained, torch.autograd.grad(loss, [weights[n] for n in trained], allow_unused=True)))
        gradients = {n: g for n, g in gradients.items() if g is not None}
        updates = {u["variable"]: values[u["value"]].t.detach() for u in graph.get("updates", [])}
        if first is None:
            first, largest = (gradients, updates), max(float(g.abs().max()) for g in gradients.values())
            graph["optimizer"]["rate"] = rate or RATE / max(1, largest)
        for name in gradients:
            velocity[name] = gradients[name] + 0.9 * velocity.get(name, 0)
            weights[name] = weights[name].detach() - graph["optimizer"]["rate"] * velocity[name]
        weights.update(updates)
    return first[0], first[1], losses


def check_family(family, folder):
    """{precision: (assigned, gradients, losses)}."""
    graph, ids, written = family_graph(family, folder)
    arrays = begin(graph, ids)
    theirs, found = train_theirs(graph, arrays), {}
    gradients, updates, losses = train_theirs(graph, arrays, torch.float32, graph["optimizer"]["rate"])
    parted = [i for i, (a, b) in enumerate(zip(losses, theirs[2])) if abs(a - b) > FAMILY_LIMITS["f32"] * abs(b)]
    theirs = (*theirs[:2], theirs[2][:parted[0]] if parted else theirs[2])
    numbers = lambda tensors: {n: t.numpy() for n, t in tensors.items()}
    own = family_differences((numbers(gradients), numbers(updates), losses), theirs)
    for precision in FAMILY_LIMITS:
        after, losses = run_ours(folder, {**written, "optimizer": graph["optimizer"]}, arrays, precision, STEPS)
        gradients = {n[len("momentum/v/"):]: t for n, t in after.items() if n.startswith("momentum/v/")}
        if set(gradients) != set(theirs[0]):
            raise ValueError(f"gradients of {sorted(set(gradients) ^ set(theirs[0]))} on one side only")
        found[precision] = family_differences((gradients, after, losses), theirs)
    return {**found, "torch f32": own}


def family_differences(one, other):
    """Of what is assigned, of gradients, of losses."""
    return (max([differ(one[1][n], t) for n, t in other[1].items()] + [0]),
            max(relative(one[0][n], g) for n, g in other[0].items()),
            max(abs(a - b) / abs(b) for a, b in zip(one[2], other[2])))


def relative(ours, theirs):
    """By the largest gradient of the tensor; those that are all but zero by what they are made of."""
    theirs = theirs.numpy()
    return float(numpy.abs(ours - theirs).max() / max(1e-3, numpy.abs(theirs).max()))


# ---- Optimizers ------------------------------------------------------------------------------------

OPTIMIZERS = {
    "sgd": {"rate": 0.05, "weight_decay": 0.1}, "momentum": {"rate": 0.02, "momentum": 0.8, "weight_decay": 0.1},
    "adam": {"rate": 0.01}, "adamw": {"rate": 0.01, "weight_decay": 0.1}, "lion": {"rate": 0.003, "weight_decay": 0.1},
    "lamb": {"rate": 0.01, "weight_decay": 0.1}, "muon": {"rate": 0.01, "weight_decay": 0.1},
}


def of_torch(kind, o, weights):
    """PyTorch's own, where it has one."""
    decay = o.get("weight_decay", 0)
    if kind in ("sgd", "momentum"):
        return torch.optim.SGD(weights, lr=o["rate"], momentum=o.get("momentum", 0), weight_decay=decay)
    if kind in ("adam", "adamw"):
        return torch.optim.AdamW(weights, lr=o["rate"], weight_decay=decay)
    return None


def orthogonal(n):
    """Newton and Schulz's iteration, as Muon's authors publish it."""
    x = n / torch.sqrt((n * n).sum() + 1e-14)
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x


def step_by_hand(kind, o, w, g, state, t):
    """Lion, LAMB and Muon from their papers; Muon's weights are matrices of [features, features]."""
    rate, decay = o["rate"], o["weight_decay"]
    if kind == "lion":
        m = state.get("m", torch.zeros_like(w))
        state["m"] = 0.99 * m + 0.01 * g
        return w - rate * (torch.sign(0.9 * m + 0.1 * g) + decay * w)
    if kind == "muon" and w.dim() == 2:
        state["m"] = 0.95 * state.get("m", torch.zeros_like(w)) + g
        x = orthogonal(g + 0.95 * state["m"])
        return w - rate * (0.2 * math.sqrt(max(w.shape)) * x + decay * w)
    beta2, epsilon = (0.95, 1e-8) if kind == "muon" else (0.999, 1e-6)
    state["m"] = 0.9 * state.get("m", 0) + 0.1 * g
    state["v"] = beta2 * state.get("v", 0) + (1 - beta2) * g * g
    u = state["m"] / (1 - 0.9 ** t) / (torch.sqrt(state["v"] / (1 - beta2 ** t)) + epsilon) + decay * w
    return w - rate * (w.norm() / u.norm() if kind == "lamb" else 1) * u


def check_optimizer(kind, folder):
    """Losses and weights of STEPS steps of a perceptron: {precision: (losses, weights)}."""
    o, random = OPTIMIZERS[kind], numpy.random.default_rng(11)
    sizes = {"batch": 12, "features": 6, "hidden": 9, "outputs": 4}
    shapes = {"w": ("features", "hidden"), "b": ("hidden",), "v": ("hidden", "outputs"), "x": ("batch", "features"), "t": ("batch", "outputs")}
    arrays = {n: random.uniform(-1, 1, [sizes[d] for d in dims]).astype("float32").astype("float64") for n, dims in shapes.items()}
    product = lambda name, a, b, dims: {"name": name, "op": "einsum", "inputs": [a, b], "dims": dims}
    graph = {"meshtf_graph": 1, "name": "perceptron", "dimensions": sizes, "inputs": [],
             "variables": [{"name": n, "dims": list(d), "init": "zeros", **({"frozen": True} if n in "xt" else {})} for n, d in shapes.items()],
             "operations": [product("xw", "x", "w", ["batch", "hidden"]), {"name": "sum", "op": "add", "inputs": ["xw", "b"], "dims": ["batch", "hidden"]},
                            {"name": "h", "op": "tanh", "inputs": ["sum"]}, product("y", "h", "v", ["batch", "outputs"]),
                            {"name": "e", "op": "subtract", "inputs": ["y", "t"]}, {"name": "e2", "op": "square", "inputs": ["e"]},
                            {"name": "loss", "op": "reduce_mean", "inputs": ["e2"], "dims": []}],
             "loss": "loss", "optimizer": {"kind": kind, **o}}
    weights = {n: torch.from_numpy(arrays[n].copy()).requires_grad_() for n in "wbv"}
    x, t = torch.from_numpy(arrays["x"]), torch.from_numpy(arrays["t"])
    optimizer, states, losses = of_torch(kind, o, weights.values()), {n: {} for n in weights}, []
    for step in range(1, STEPS + 1):
        loss = F.mse_loss(torch.tanh(x @ weights["w"] + weights["b"]) @ weights["v"], t)
        losses.append(loss.item())
        for w in weights.values():
            w.grad = None
        loss.backward()
        if optimizer:
            optimizer.step()
            continue
        for n, w in weights.items():
            w.data = step_by_hand(kind, o, w.data, w.grad, states[n], step)
    found = {}
    for precision in LIMITS:
        _, ours = run_ours(folder, graph, arrays, precision, STEPS)
        after = read_weights(os.path.join(folder, f"run/step-{STEPS:08d}.safetensors"))
        found[precision] = (max(abs(a - b) / abs(b) for a, b in zip(ours, losses)), max(differ(after[n], w) for n, w in weights.items()))
    return found


# ---- The table -------------------------------------------------------------------------------------

def operations_of(formats):
    rows = re.findall(r"^\| `(\w+)` \| \d", open(formats).read(), re.M)
    internal = {"sum_exp", "softmax_apply", "label_logit", "cross_entropy", "accumulate", "clip_factor", "learning_rate", "sgd",
                "momentum", "lion", "adam", "causal_zero", "cache_update", "cached_attention", "quantized_einsum",
                "attention_further", "kept_linear_attention", "kept_selective_scan", "from_host", "to_host"}  # reached through others, by inference, or made by searches
    return [r for r in rows if not r.endswith("_grad") and r not in internal and not r.startswith(("adafactor", "normalize_", "lamb")) or r == "conv_filter_grad"]


def line(name, found, limits):
    cells = [f"{value:10.1e}" for values in found.values() for value in values]
    own = found.get("torch f32", (0, 0, 0))
    allowed = {p: [max(limit, 10 * o if p == "f32" else 0) for o in own] for p, limit in limits.items()}
    bad = any(not value <= limit for p in limits for value, limit in zip(found[p], allowed[p]))
    print(f"{name:44}" + "".join(cells) + ("   TOO FAR" if bad else ""), flush=True)
    return bad


def judge(name, check, limits):
    try:
        return line(name, check(), limits)
    except Exception as error:
        print(f"{name:44} FAILED {type(error).__name__}: {error}", flush=True)
        return True


def main(formats, folder):
    torch.set_num_threads(1)
    bad, seen = 0, set()
    print(f"{'operation':44}{'f32 result':>10}{' gradient':>10}{'f64 result':>10}{' gradient':>10}")
    for case in cases():
        seen |= {case.op["op"]} | {o["op"] for o in case.more if "op" in o}
        if ONLY in case.name:
            bad += judge(case.name, lambda: case.check(folder), LIMITS)
    print(f"{'optimizer':44}{'f32 losses':>10}{' weights':>10}{'f64 losses':>10}{' weights':>10}")
    for kind in OPTIMIZERS:
        if ONLY in kind:
            bad += judge(kind, lambda: check_optimizer(kind, folder), LIMITS)
    print(f"{'family':44}{'f32 assign':>10}{' gradient':>10}{' losses':>10}{'f64 assign':>10}{' gradient':>10}{' losses':>10}{'torch f32':>10}{' gradient':>10}{' losses':>10}")
    networks = sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../golden/networks/*.json")))
    for family in families() + networks:
        if ONLY in family:
            bad += judge(os.path.basename(family), lambda: check_family(family, folder), FAMILY_LIMITS)
    for missing in sorted(set(operations_of(formats)) - seen):
        print(f"{missing:44} no case")
        bad += 1
    sys.exit(1 if bad else 0)


main(*sys.argv[1:])
