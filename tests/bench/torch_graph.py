# SPDX-License-Identifier: GPL-3.0-or-later
"""What graph.json means, said in PyTorch: every operation that a user may write, gradients by autograd.

    Graph(json).run(values) -> the values of all tensors

A value is a `Named`: a torch tensor and the names of its dimensions in order. Nothing here knows of
strategies, kernels or the rewriting of composites; the formulas are those of layouts/FORMATS.md.
"""
import itertools
import math

import torch
import torch.nn.functional as F

HIDDEN = -1e30   # what masks add; a query whose scores are all below HIDDEN_FROM gets 0
HIDDEN_FROM = -1e29


class Named:
    def __init__(self, t, dims):
        assert t.dim() == len(dims), (tuple(t.shape), dims)
        self.t, self.dims = t, tuple(dims)

    def to(self, dims):
        """Aligned with `dims`: permuted, of size 1 where it lacks one."""
        kept = [d for d in dims if d in self.dims]
        assert len(kept) == len(self.dims), (self.dims, dims)
        t = self.t.permute([self.dims.index(d) for d in kept])
        return t.reshape([t.shape[kept.index(d)] if d in kept else 1 for d in dims])

    def last(self, *dims):
        """Permuted so that `dims` come last; and the others' names."""
        rest = [d for d in self.dims if d not in dims]
        return self.to(rest + list(dims)), rest


def union(*inputs):
    return list(dict.fromkeys(d for x in inputs for d in x.dims))


def pythons(formula):
    """A formula as Python has it: more parentheses around what binds more tightly (as Fortran's first compiler did), for | and & do not bind loosest."""
    for sign, other in (("(", "((("), (")", ")))"), (",", ")),(("), ("||", "))|(("), ("&&", ")&("), ("^", "**")):
        formula = formula.replace(sign, other)
    return f"(({formula}))"


def einsum(inputs, dims):
    number = {d: i for i, d in enumerate(union(*inputs))}
    pieces = itertools.chain(*((x.t, [number[d] for d in x.dims]) for x in inputs))
    return Named(torch.einsum(*pieces, [number[d] for d in dims]), dims)


def one_hot(ids, dim, size, dtype):
    places = torch.arange(size)
    return Named((ids.t.unsqueeze(-1) == places).to(dtype), ids.dims + (dim,))


UNARY = {
    "relu": F.relu, "gelu": lambda x: F.gelu(x, approximate="tanh"), "gelu_exact": F.gelu, "silu": F.silu,
    "tanh": torch.tanh, "sigmoid": torch.sigmoid, "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt, "square": torch.square, "negate": torch.neg, "abs": torch.abs, "sign": torch.sign,
    "logical_not": lambda x: (x == 0).to(x.dtype), "softplus": lambda x: F.softplus(x, threshold=40), "sin": torch.sin, "cos": torch.cos,
    "erf": torch.erf, "floor": torch.floor, "ceil": torch.ceil, "reciprocal": torch.reciprocal,
    "stop_gradient": torch.detach, "loop_begin": lambda x: x,
}
UNARY_WITH = {
    "scale": lambda x, o: x * o["factor"],
    "power": lambda x, o: torch.pow(x, o["exponent"]),
    "clip": lambda x, o: torch.clamp(x, o["low"], o["high"]),
    "leaky_relu": lambda x, o: F.leaky_relu(x, o.get("slope", 0.01)),
    "elu": lambda x, o: torch.where(x > 0, x, o.get("slope", 1) * torch.expm1(x)),
}
BINARY = {
    "add": torch.add, "subtract": torch.sub, "multiply": torch.mul, "divide": torch.div,
    "maximum": torch.maximum, "minimum": torch.minimum, "mod": torch.remainder, "pow": torch.pow,
    "equal": torch.eq, "not_equal": torch.ne, "less": torch.lt, "less_equal": torch.le, "greater": torch.gt,
    "greater_equal": torch.ge, "logical_and": torch.logical_and, "logical_or": torch.logical_or,
    "logical_xor": torch.logical_xor,
}


def unrolled(graph):
    """A graph whose `repeat` blocks are copied out and whose `loop` blocks are written flat (FORMATS.md, Loops)."""
    variables, operations, loops, sizes = list(graph["variables"]), [], [], dict(graph["dimensions"])

    def meant(name, names):
        """What a name is called in the flat graph; further results are called after the first, as "chosen/index"."""
        first, slash, rest = name.rpartition("/")
        return names.get(name) or names.get(first, first) + slash + rest

    def add(o, names, prefix, **more):
        operations.append({**o, "name": prefix + o["name"], "inputs": [meant(i, names) for i in o.get("inputs", [])], **more})

    def begin(block, names, prefix):
        """Declares a block's variables and returns what its names mean."""
        body = block["operations"]
        for p in body:
            if p.get("op") == "expression":
                p.setdefault("arguments", " ".join(p["inputs"]))
        variables.extend({**v, "name": prefix + v["name"]} for v in block.get("variables", []))
        inside = [p["name"] for p in body if "op" in p] + [v["name"] for v in block.get("variables", [])]
        return {**names, **{n: prefix + n for n in inside}}

    def items(list_, names, prefix, **more):
        for o in list_:
            if "repeat" in o:
                repeat(o["repeat"], names)
            elif isinstance(o.get("loop"), dict):
                loop(o["loop"], names, prefix)
            else:
                add(o, names, prefix, **more)

    def repeat(block, known):
        name, carry = block["name"], block["carry"]
        now = {c["name"]: known.get(c["init"], c["init"]) for c in carry}
        for i in range(block["count"]):
            names = {**begin(block, known, f"{name}/{i}/"), **now}
            items(block["operations"], names, f"{name}/{i}/")
            now = {c["name"]: meant(c["next"], names) for c in carry}
        known.update({f"{name}/{c}": value for c, value in now.items()})

    def loop(block, outer, before):
        block = {"dimension": block["name"], **block}
        sizes.setdefault(block["dimension"], block.get("count"))
        name, carry = before + block["name"], block["carry"]
        loops.append({**{k: block[k] for k in ("dimension", "reverse") if k in block}, "name": name})
        prefix = name + "/"
        names = {**begin(block, outer, prefix), **{x["name"]: prefix + x["name"] for x in carry + block.get("inputs", [])}}
        for c in carry:
            add({"name": c["name"], "op": "loop_begin", "inputs": [c["init"]]}, outer, prefix)
        for x in block.get("inputs", []):
            add({"name": x["name"], "op": "loop_slice", "inputs": [x["of"]], "dimension": block["dimension"]}, outer, prefix, loop=name)
        items(block["operations"], names, prefix, loop=name)
        for y in block.get("outputs", []):
            add({"name": y["name"], "op": "loop_stack", "inputs": [y["of"]], "dimension": block["dimension"]}, names, prefix, loop=name)
        for c in carry:
            add({"name": c["name"] + "/next", "op": "loop_next", "inputs": [c["name"], c["next"]]}, names, prefix, loop=name)
        outer.update({f"{block['name']}/{x['name']}": prefix + x["name"] for x in carry + block.get("outputs", [])})

    items(graph["operations"], {}, "")
    return {**graph, "dimensions": sizes, "variables": variables, "operations": operations, "loops": loops}


class Graph:
    def __init__(self, graph, dtype):
        self.graph, self.dtype = graph, dtype
        self.sizes = {d: s["size"] if isinstance(s, dict) else s for d, s in graph["dimensions"].items()}
        self.kept = None  # of shares that attention drops: 1 where one is kept, else 0
        self.loops = {l["name"]: l for l in graph.get("loops", [])}

    def size(self, dim):
        return self.sizes[dim]

    def type_of(self, name):
        return torch.int64 if name == "int32" else self.dtype

    def run(self, values):
        """`values` of inputs and variables, by name; added to are those of the operations."""
        for loop, group in itertools.groupby(self.graph["operations"], lambda o: o.get("loop")):
            if loop is None:
                for o in group:
                    self.evaluate(o, values)
            else:
                self.run_loop(self.loops[loop], list(group), values)
        return values

    def run_loop(self, loop, operations, values):
        count = self.size(loop["dimension"])
        stacks = {o["name"]: [None] * count for o in operations if o["op"] == "loop_stack"}
        order = range(count - 1, -1, -1) if loop.get("reverse") else range(count)
        for self.element in order:
            for o in operations:
                if o["op"] == "loop_stack":
                    x = values[o["inputs"][0]]
                    stacks[o["name"]][self.element] = x.t
                    values[o["name"]] = Named(torch.stack([x.t]), (o["dimension"],) + x.dims)
                else:
                    self.evaluate(o, values)
            for o in operations:
                if o["op"] == "loop_next":
                    values[o["inputs"][0]] = values[o["name"]]
        for name, elements in stacks.items():
            values[name] = Named(torch.stack(elements), values[name].dims)

    def evaluate(self, o, values):
        inputs, kind, name = [values[i] for i in o["inputs"]], o["op"], o["name"]
        if kind in UNARY:
            result = Named(UNARY[kind](inputs[0].t), inputs[0].dims)
        elif kind in UNARY_WITH:
            result = Named(UNARY_WITH[kind](inputs[0].t, o), inputs[0].dims)
        elif kind in BINARY:
            result = self.binary(o, inputs)
        else:
            result = getattr(self, "op_" + kind)(o, *inputs)
        results = result if isinstance(result, dict) else {"": result}
        for suffix, value in results.items():
            dims = o.get("dims") or (inputs[0].dims if inputs and set(inputs[0].dims) == set(value.dims) else value.dims)
            value = Named(value.to(dims), dims) if suffix == "" else value
            values[name + suffix] = value

    def binary(self, o, inputs):
        dims = o.get("dims") or union(*inputs)
        total = inputs[0].to(dims)
        for other in inputs[1:]:
            if o["op"] == "mod" and total.dtype == torch.int64:
                total = torch.where(other.to(dims) == 0, 0, torch.remainder(total, other.to(dims).masked_fill(other.to(dims) == 0, 1)))
            else:
                total = BINARY[o["op"]](total, other.to(dims))
        total = total.to(inputs[0].t.dtype) if total.dtype == torch.bool else total
        return Named(total.expand([self.size(d) for d in dims]), dims)

    # ---- sums and reductions

    def op_einsum(self, o, *inputs):
        return einsum(inputs, o["dims"])

    def reduced(self, o, x):
        gone = [d for d in x.dims if d not in o["dims"]]
        t, rest = x.last(*gone)
        return (t.flatten(len(rest)) if gone else t.unsqueeze(-1)), rest

    def reduce(self, function):
        def row(o, x):
            t, rest = self.reduced(o, x)
            return Named(function(t), rest)
        return row

    def __getattr__(self, name):
        reductions = {
            "op_reduce_sum": lambda t: t.sum(-1), "op_reduce_mean": lambda t: t.mean(-1),
            "op_reduce_max": lambda t: t.amax(-1), "op_reduce_min": lambda t: t.amin(-1),
            "op_reduce_prod": lambda t: t.prod(-1), "op_reduce_any": lambda t: (t != 0).any(-1).to(t.dtype),
            "op_reduce_all": lambda t: (t != 0).all(-1).to(t.dtype), "op_log_sum_exp": lambda t: t.logsumexp(-1),
            "op_argmax": lambda t: t.argmax(-1),
        }
        if name not in reductions:
            raise AttributeError(name)
        return self.reduce(reductions[name])

    def op_variance(self, o, x, mean):
        t, rest = self.reduced(o, Named((x.t - mean.to(x.dims)) ** 2, x.dims))
        return Named(t.mean(-1), rest)

    def op_normalize(self, o, x, mean, variance, scale, *bias):
        y = (x.t - mean.to(x.dims)) * scale.to(x.dims) / torch.sqrt(variance.to(x.dims) + o.get("epsilon", 1e-6))
        return Named(y + bias[0].to(x.dims) if bias else y, x.dims)

    def op_softmax(self, o, x):
        return Named(F.softmax(x.t, x.dims.index(o["dimension"])), x.dims)

    def op_layer_norm(self, o, x, scale, *bias):
        t, rest = x.last(o["dimension"])
        y = F.layer_norm(t, t.shape[-1:], None, None, o.get("epsilon", 1e-6))
        dims = rest + [o["dimension"]]
        y = y * scale.to(dims)
        return Named(y + bias[0].to(dims) if bias else y, dims)

    def op_rms_norm(self, o, x, scale):
        i = x.dims.index(o["dimension"])
        root = torch.sqrt((x.t ** 2).mean(i, keepdim=True) + o.get("epsilon", 1e-6))
        return Named(x.t / root * scale.to(x.dims), x.dims)

    def op_softmax_cross_entropy(self, o, logits, labels, *mask):
        classes = [d for d in logits.dims if d not in labels.dims][0]
        t, rest = logits.last(classes)
        ids = labels.to(rest)
        ignored = -100 if o.get("ignore", 0) else -10 ** 6
        ids = torch.where(ids < 0, ignored, ids)
        n = t.shape[-1]
        flat = F.cross_entropy(t.reshape(-1, n), ids.reshape(-1), reduction="none", ignore_index=ignored,
                               label_smoothing=o.get("smoothing", 0))
        losses = flat.reshape(ids.shape) + o.get("z_loss", 0) * t.logsumexp(-1) ** 2 * (ids >= 0)
        return Named(losses * mask[0].to(rest) if mask else losses, rest)

    def op_cumulative_sum(self, o, x):
        i, t = x.dims.index(o["dimension"]), x.t
        t = t.flip(i) if o.get("reverse", 0) else t
        y = t.cumsum(i) - (t if o.get("exclusive", 0) else 0)
        return Named(y.flip(i) if o.get("reverse", 0) else y, x.dims)

    def scanned(self, o, x, function):
        i, t = x.dims.index(o["dimension"]), x.t
        back = (lambda y: y.flip(i)) if o.get("reverse", 0) else (lambda y: y)
        return Named(back(function(back(t), i)), x.dims)

    def op_cumulative_max(self, o, x):
        return self.scanned(o, x, lambda t, i: torch.cummax(t, i).values)

    def op_cumulative_min(self, o, x):
        return self.scanned(o, x, lambda t, i: torch.cummin(t, i).values)

    def op_cumulative_log_sum_exp(self, o, x):
        return self.scanned(o, x, torch.logcumsumexp)

    def op_local_response_norm(self, o, x):
        t, rest = x.last(o["dimension"])
        n = t.shape[-1]
        y = F.local_response_norm(t.reshape(-1, n, 1), o["size"], o.get("alpha", 1e-4), o.get("beta", 0.75), o.get("bias", 1))
        return Named(Named(y.reshape(t.shape), rest + [o["dimension"]]).to(x.dims), x.dims)

    def op_top_k(self, o, x):
        t, rest = x.last(o["from"])
        values, places = torch.sort(t, dim=-1, descending=True, stable=True)
        k, dims = self.size(o["to"]), rest + [o["to"]]
        order = [o["to"] if d == o["from"] else d for d in x.dims]
        cut = lambda y: Named(Named(y[..., :k], dims).to(order), order)
        return {"": cut(values), "/index": cut(places)}

    def op_sort(self, o, x):
        values, places = torch.sort(x.t, dim=x.dims.index(o["dimension"]), descending=bool(o.get("reverse", 0)), stable=True)
        return {"": Named(values, x.dims), "/index": Named(places, x.dims)}

    def op_expression(self, o, *inputs):
        """Its formula as Python's, which binds signs alike."""
        dims = o.get("dims") or union(*inputs)
        names = {name: x.to(dims) for name, x in zip(o.get("arguments", " ".join(o["inputs"])).split(" "), inputs)}
        tensor = lambda x: torch.as_tensor(x, dtype=self.dtype)
        functions = {**UNARY, **BINARY, "max": lambda a, b: torch.maximum(tensor(a), tensor(b)), "min": lambda a, b: torch.minimum(tensor(a), tensor(b)),
                     "where": lambda a, b, c: torch.where(a != 0, tensor(b), tensor(c))}
        value = eval(pythons(o["expression"]), {**functions, **names})
        value = tensor(value) if value.dtype == torch.bool else value  # a comparison's is 1 or 0
        return Named(value.expand([self.size(d) for d in dims]), dims)

    # ---- shapes

    def op_rename(self, o, x):
        return Named(x.t, [o["to"] if d == o["from"] else d for d in x.dims])

    def op_transpose(self, o, x):
        return Named(x.to(o["dims"]), o["dims"])

    def op_reshape(self, o, x):
        return Named(x.t.reshape([self.size(d) for d in o["dims"]]), o["dims"])

    def replaced(self, o, x, function):
        i = x.dims.index(o["from"])
        return Named(function(x.t.movedim(i, -1)).movedim(-1, i), [o["to"] if d == o["from"] else d for d in x.dims])

    def op_resample(self, o, x):
        start, stride, dilation = o.get("start", 0), o.get("stride", 1), o.get("dilation", 1)
        at, size = start + stride * torch.arange(self.size(o["to"])), self.size(o["from"])
        at = at % (size * dilation) if o.get("wrap", 0) else at
        there = (at % dilation == 0) & (at >= 0) & (at < size * dilation)
        place = torch.where(there, at // dilation, 0)
        return self.replaced(o, x, lambda t: torch.where(there, t[..., place], torch.zeros((), dtype=t.dtype)))

    def op_slice(self, o, x):
        start, stride, n = o.get("start", 0), o.get("stride", 1), self.size(o["to"])
        return self.replaced(o, x, lambda t: t[..., start:start + stride * (n - 1) + 1:stride])

    def op_pad(self, o, x):
        before = o.get("before", 0)
        after = self.size(o["to"]) - before - self.size(o["from"])
        return self.replaced(o, x, lambda t: F.pad(t, (before, after), value=o.get("value", 0)))

    def op_reverse(self, o, x):
        return Named(x.t.flip(x.dims.index(o["dimension"])), x.dims)

    def op_roll(self, o, x):
        return Named(x.t.roll(o["shift"], x.dims.index(o["dimension"])), x.dims)

    def op_select(self, o, x):
        i = x.dims.index(o["dimension"])
        return Named(x.t.select(i, o["index"]), x.dims[:i] + x.dims[i + 1:])

    def op_stack(self, o, *inputs):
        new = [d for d in o["dims"] if d not in inputs[0].dims][0]
        rest = [d for d in o["dims"] if d != new]
        return Named(torch.stack([x.to(rest) for x in inputs], -1), rest + [new])

    def op_concat(self, o, *inputs):
        new = [d for d in o["dims"] if all(d not in x.dims for x in inputs)][0]
        rest = [d for d in o["dims"] if d != new]
        pieces = []
        for x in inputs:
            own = [d for d in x.dims if d not in rest]
            pieces.append(x.to(rest + own) if own else x.to(rest).unsqueeze(-1))
        return Named(torch.cat(pieces, -1), rest + [new])

    def op_broadcast(self, o, x):
        return Named(x.to(o["dims"]).expand([self.size(d) for d in o["dims"]]), o["dims"])

    def op_cast(self, o, x):
        return Named(x.t.to(self.type_of(o["dtype"])), x.dims)

    def op_in_train_phase(self, o, x, _):
        return x

    def op_where(self, o, condition, a, b):
        dims = o.get("dims") or union(condition, a, b)
        t = torch.where(condition.to(dims) != 0, a.to(dims), b.to(dims))
        return Named(t.expand([self.size(d) for d in dims]), dims)

    def op_constant(self, o):
        return Named(torch.full([self.size(d) for d in o["dims"]], o["value"], dtype=self.type_of(o.get("dtype"))), o["dims"])

    def op_range(self, o):
        return Named(torch.arange(self.size(o["dims"][0])).to(self.type_of(o.get("dtype"))), o["dims"])

    def op_one_hot(self, o, ids):
        dim = [d for d in o["dims"] if d not in ids.dims][0]
        return one_hot(ids, dim, self.size(dim), self.type_of(o.get("dtype")))

    def op_loop_slice(self, o, x):
        i = x.dims.index(o["dimension"])
        return Named(x.t.select(i, self.element), x.dims[:i] + x.dims[i + 1:])

    def op_loop_next(self, o, _, following):
        return following

    # ---- by index

    def op_embedding(self, o, table, ids):
        dim = [d for d in table.dims if d not in o["dims"]][0]
        return einsum([table, one_hot(ids, dim, self.size(dim), table.t.dtype)], o["dims"])

    op_gather = op_embedding

    def op_scatter_add(self, o, ids, x, *more):
        dim = [d for d in o["dims"] if d not in x.dims and d not in ids.dims][0]
        chosen = one_hot(ids, dim, self.size(dim), x.t.dtype)
        # What x alone lacks of the result is broadcast, what ids and x have beyond it is summed.
        total = einsum([chosen, x], o["dims"])
        return Named(total.t + more[0].to(o["dims"]), o["dims"]) if more else total

    def op_slots(self, o, choice, *gate):
        """Choices of one group stand in a queue; each takes the next place of its expert."""
        ids, rest = choice.last(o["dimension"], o["choices"])
        groups = ids.reshape(-1, *ids.shape[-2:])
        gates = gate[0].last(o["dimension"], o["choices"])[0].reshape(groups.shape) if gate else groups
        experts, capacity = self.size(o["experts"]), self.size(o["capacity"]) if o.get("capacity") else None
        slots = torch.full_like(groups, -1)
        for choices, weights, slot in zip(groups, gates, slots):
            queue = [at for at in self.queue(o, weights) if 0 <= int(choices[at]) < experts]
            places = {e: [at for at in queue if int(choices[at]) == e][:capacity] for e in range(experts)}
            begin = 0
            for e, served in places.items():
                # Gates decide who is served; the places are then taken in the order of tokens.
                for place, at in enumerate(sorted(served) if o.get("priority", 0) == 1 else served):
                    slot[at] = begin + place
                begin += len(served) if capacity is None else capacity
        return Named(Named(slots.reshape(ids.shape), rest + [o["dimension"], o["choices"]]).to(choice.dims), choice.dims)

    @staticmethod
    def queue(o, gates):
        """(token, choice), those that are served first before the others."""
        all_of_them = [(t, c) for t in range(gates.shape[0]) for c in range(gates.shape[1])]
        by_gate = {0: lambda at: 0, 1: lambda at: -float(gates[at]), 2: lambda at: -float(gates[at[0], 0])}[o.get("priority", 0)]
        by_choice = o.get("queue", 0) == 1 and o.get("priority", 0) != 1
        return sorted(all_of_them, key=lambda at: (at[1] if by_choice else 0, by_gate(at), at))

    def op_slot_ids(self, o, choice, slot):
        places = [d for d in o["dims"] if d not in slot.dims]
        return self.placed(o["dims"], places, slot, choice, empty=-1)

    def placed(self, dims, places, slot, x, empty=0):
        """x in the place of each choice (the one choice there is of a place)."""
        count = math.prod(self.size(d) for d in places)
        chosen = one_hot(slot, "place", count, x.t.dtype)
        rest = [d for d in dims if d not in places]
        y = einsum([chosen, x], rest + ["place"])
        if empty:
            filled = einsum([chosen], [d for d in chosen.dims if d in rest] + ["place"]).to(rest + ["place"])
            y = Named(torch.where(filled > 0, y.t, torch.full((), empty, dtype=y.t.dtype)), y.dims)
        t = y.t.reshape(list(y.t.shape[:-1]) + [self.size(d) for d in places])
        return Named(t, rest + places)

    def op_dispatch(self, o, x, slot, *gate):
        places = [d for d in o["dims"] if d not in x.dims and d not in slot.dims]
        weighted = einsum([x, gate[0]], union(x, gate[0])) if gate else x
        return self.placed(o["dims"], places, slot, weighted)

    def op_combine(self, o, y, slot, *gate):
        places = [d for d in y.dims if d not in o["dims"] and d not in slot.dims]
        rest = [d for d in y.dims if d not in places]
        flat = Named(y.to(rest + places).reshape([self.size(d) for d in rest] + [-1]), rest + ["place"])
        chosen = one_hot(slot, "place", flat.t.shape[-1], y.t.dtype)
        return einsum([flat, chosen] + list(gate), o["dims"])

    def op_expert_einsum(self, o, x, w, expert):
        dim = o["experts"]
        return einsum([x, w, one_hot(expert, dim, self.size(dim), x.t.dtype)], o["dims"])

    # ---- attention

    def op_causal_mask(self, o, x):
        dims = [o["query"], o["memory"]]
        hidden = torch.ones(self.size(dims[0]), self.size(dims[1]), dtype=torch.bool).triu(1)
        return Named(x.t.masked_fill(Named(hidden, dims).to(x.dims), HIDDEN), x.dims)

    def op_attention(self, o, q, k, v, *bias):
        query, memory, features = o["query"], o["memory"], o["dimension"]
        rest = [d for d in q.dims if d != features] + [memory]
        s = einsum([q, k], rest).t * o["factor"]
        if o.get("softcap", 0):
            s = o["softcap"] * torch.tanh(s / o["softcap"])
        for b in bias:
            s = s + b.to(rest)
        if o.get("causal", 0):
            behind = torch.arange(self.size(query)).unsqueeze(1) - torch.arange(self.size(memory))
            hidden = behind < 0
            if o.get("window", 0):
                hidden = hidden | (behind >= o["window"])
            s = s.masked_fill(Named(hidden, [query, memory]).to(rest), HIDDEN)
        nothing = (s < HIDDEN_FROM).all(-1, keepdim=True)
        weights = torch.where(nothing, torch.zeros((), dtype=s.dtype), F.softmax(s, -1))
        if o.get("dropout", 0) and self.kept is not None:
            weights = weights * self.kept / (1 - o["dropout"])
        y = einsum([Named(weights, rest), v], [d for d in q.dims])
        return {"": y, "/lse": Named(torch.where(nothing.squeeze(-1), torch.zeros((), dtype=s.dtype), s.logsumexp(-1)), rest[:-1])}

    def op_linear_attention(self, o, v, q, k, log, *beta):
        heads = [d for d in v.dims if d not in (o["dimension"], v.dims[-1])]
        return self.over_places(o, v, q, k, log.to([o["dimension"]] + heads).exp()[..., None, None], *beta)

    def op_selective_scan(self, o, v, q, k, step, rate):
        places = [o["dimension"]] + [d for d in v.dims if d not in (o["dimension"], v.dims[-1])]
        steps = step.to(places + [v.dims[-1]])[..., None, :]
        return self.over_places(o, v, q, k, (steps * rate.to([o["keys"], v.dims[-1]])).exp())

    def over_places(self, o, v, q, k, kept, *beta):
        """A state place by place, of which shares `kept` stay."""
        places, keys, values = o["dimension"], o["keys"], v.dims[-1]
        heads = [d for d in v.dims if d not in (places, values)]
        rows = [x.to([places] + heads + [last]) for x, last in ((v, values), (q, keys), (k, keys))]
        betas = [b.to([places] + heads)[..., None] for b in beta]
        state, said = 0, []
        for v_now, q_now, k_now, kept_now, *beta_now in zip(*rows, kept, *betas):
            state = state * kept_now
            if beta:
                v_now = beta_now[0] * (v_now - (k_now[..., None] * state).sum(-2))
            state = state + k_now[..., None] * v_now[..., None, :]
            said.append((q_now[..., None] * state).sum(-2))
        return Named(Named(torch.stack(said), [places] + heads + [values]).to(v.dims), v.dims)

    def op_rotary(self, o, x, *begin):
        base, gain = o.get("base", 10000), o.get("gain", 1)
        t, rest = x.last(o["position"], o["dimension"])
        n = o.get("rotated", 0) or t.shape[-1]
        pair = torch.arange(n // 2, dtype=torch.float64)
        frequency = stretched(o, base ** (-2 * pair / n))
        position = torch.arange(t.shape[-2], dtype=torch.float64)
        if begin:
            position = position + begin[0].to(rest + [o["position"]]).to(torch.float64)
        angle = o.get("angle", 1) * position.unsqueeze(-1) * frequency
        cos, sin = (gain * torch.cos(angle)).to(t.dtype), (gain * torch.sin(angle)).to(t.dtype)
        turned, kept = t[..., :n], t[..., n:]
        if o.get("adjacent", 0):
            a, b = turned[..., 0::2], turned[..., 1::2]
            y = torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)
        else:
            a, b = turned[..., :n // 2], turned[..., n // 2:]
            y = torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
        return Named(torch.cat([y, kept], -1), rest + [o["position"], o["dimension"]])

    # ---- windows

    def windows(self, o):
        """(from, to, stride, dilation, before) of each."""
        for w in o["windows"]:
            yield w["from"], w["to"], w.get("stride", 1), w.get("dilation", 1), self.before(w, o["op"])

    def before(self, w, kind):
        padding = w.get("padding")
        if padding in (None, "valid"):
            return w.get("before", 0)
        small, large = (w["from"], w["to"]) if kind == "conv_transpose" else (w["to"], w["from"])
        size = w.get("size") or self.size(w["kernel"])
        reach = (self.size(small) - 1) * w.get("stride", 1) + (size - 1) * w.get("dilation", 1) + 1
        total = max(0, reach - self.size(large))
        return total // 2 if padding == "same" else total - total // 2

    def padded(self, o, x, value=0):
        """x (..., windows) with what windows reach of padding, no more and no less."""
        widths = []
        for (source, to, stride, dilation, before), w in zip(self.windows(o), o["windows"]):
            size = w.get("size") or self.size(w["kernel"])
            reach = (self.size(to) - 1) * stride + (size - 1) * dilation + 1
            widths = [before, reach - before - self.size(source)] + widths
        return F.pad(x, widths, value=value)

    def op_conv(self, o, x, filter):
        return self.convolve(o, x, filter, [d for d in o["dims"]])

    def convolve(self, o, x, filter, out):
        spaces = list(self.windows(o))
        sources, targets = [s[0] for s in spaces], [s[1] for s in spaces]
        kernels = [w["kernel"] for w in o["windows"]]
        groups = [d for d in x.dims if d in filter.dims and d in out]
        summed = [d for d in x.dims if d in filter.dims and d not in out]
        made = [d for d in filter.dims if d in out and d not in x.dims]
        batch = [d for d in x.dims if d not in filter.dims and d not in sources]
        n = lambda dims: math.prod(self.size(d) for d in dims)
        t = x.to(batch + groups + summed + sources)
        t = self.padded(o, t.reshape([n(batch), n(groups + summed)] + [self.size(d) for d in sources]))
        f = filter.to(groups + made + summed + kernels)
        f = f.reshape([n(groups + made), n(summed)] + [self.size(d) for d in kernels])
        conv = (F.conv1d, F.conv2d, F.conv3d)[len(spaces) - 1]
        y = conv(t, f, stride=[s[2] for s in spaces], dilation=[s[3] for s in spaces], groups=n(groups))
        dims = batch + groups + made + targets
        return Named(y.reshape([self.size(d) for d in dims]), dims)

    def op_conv_filter_grad(self, o, x, dy):
        filter = torch.zeros([self.size(d) for d in o["dims"]], dtype=x.t.dtype, requires_grad=True)
        y = self.convolve({**o, "op": "conv"}, x, Named(filter, o["dims"]), dy.dims)
        return Named(torch.autograd.grad(y.to(dy.dims), filter, dy.t, create_graph=True)[0], o["dims"])

    def op_conv_transpose(self, o, x, filter):
        spaces = list(self.windows(o))
        sources, targets = [s[0] for s in spaces], [s[1] for s in spaces]
        kernels, out = [w["kernel"] for w in o["windows"]], o["dims"]
        groups = [d for d in x.dims if d in filter.dims and d in out]
        summed = [d for d in x.dims if d in filter.dims and d not in out]
        made = [d for d in filter.dims if d in out and d not in x.dims]
        batch = [d for d in x.dims if d not in filter.dims and d not in sources]
        n = lambda dims: math.prod(self.size(d) for d in dims)
        t = x.to(batch + groups + summed + sources).reshape([n(batch), n(groups + summed)] + [self.size(d) for d in sources])
        f = filter.to(groups + summed + made + kernels).reshape([n(groups + summed), n(made)] + [self.size(d) for d in kernels])
        conv = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[len(spaces) - 1]
        y = conv(t, f, stride=[s[2] for s in spaces], dilation=[s[3] for s in spaces], groups=n(groups))
        widths = []
        for i, (_, to, _, _, before) in enumerate(spaces):
            widths = [-before, self.size(to) + before - y.shape[2 + i]] + widths
        dims = batch + groups + made + targets
        return Named(F.pad(y, widths).reshape([self.size(d) for d in dims]), dims)

    def unfolded(self, o, x, value):
        """x by windows: (rest, windows, places of each), and the rest's names."""
        spaces = list(self.windows(o))
        t, rest = x.last(*[s[0] for s in spaces])
        t = self.padded(o, t.reshape([-1, 1] + list(t.shape[len(rest):])), value)
        for i, (s, w) in enumerate(zip(spaces, o["windows"])):
            t = t.unfold(2 + i, (w["size"] - 1) * s[3] + 1, s[2])[..., ::s[3]]
        dims = rest + [s[1] for s in spaces]
        return t.reshape([self.size(d) for d in dims] + [-1]), dims

    def op_max_pool(self, o, x):
        t, dims = self.unfolded(o, x, -math.inf)
        spaces = list(self.windows(o))
        flat, rest = x.last(*[s[0] for s in spaces])
        pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[len(spaces) - 1]
        padded = self.padded(o, flat.reshape([-1, 1] + list(flat.shape[len(rest):])), -math.inf)
        y = pool(padded, [w["size"] for w in o["windows"]], stride=[s[2] for s in spaces], dilation=[s[3] for s in spaces])
        order = [{s[0]: s[1] for s in spaces}.get(d, d) for d in x.dims]
        out = o.get("dims") or order
        return {"": Named(y.reshape([self.size(d) for d in dims]), dims),
                "/index": Named(Named(t.argmax(-1), dims).to(out), out)}

    def op_average_pool(self, o, x):
        t, dims = self.unfolded(o, x, 0)
        count = t.shape[-1]
        if not o.get("counted", 0):
            count = self.unfolded(o, Named(torch.ones_like(x.t), x.dims), 0)[0].sum(-1)
        return Named(t.sum(-1) / count, dims)


def stretched(o, frequency):
    """Llama 3.1's rule by wavelength, or YaRN's ramp over the pairs."""
    context, stretch = o.get("context", 0), o.get("stretch", 1)
    low, high = o.get("low", 1), o.get("high", 4)
    if not context:
        return frequency
    if o.get("ramp", 0):
        ramp = ((torch.arange(len(frequency), dtype=torch.float64) - low) / (high - low)).clamp(0, 1)
        return frequency / stretch * ramp + frequency * (1 - ramp)
    length = 2 * math.pi / frequency
    smooth = (context / length - low) / (high - low)
    middle = (1 - smooth) * frequency / stretch + smooth * frequency
    return torch.where(length < context / high, frequency, torch.where(length > context / low, frequency / stretch, middle))
