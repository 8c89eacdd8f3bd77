# SPDX-License-Identifier: GPL-3.0-or-later
"""What training should do where many of its details meet, from the papers' formulas on lists of Python's numbers.

    training_details.py write FOLDER                     CASE.json for each case, weights.safetensors, x.npy, y.npy
    training_details.py judge CASE METRICS WEIGHTS [VARIABLES]
                                                         METRICS: of meshtf-run; WEIGHTS: its last checkpoint; VARIABLES: those
                                                         that are read an update late, "wbuc" of the first stage

Two hidden layers of tanh and a softmax over labels of which some count nothing, smoothed, with a z-loss. A running mean of the
first layer is assigned behind each step and taken away in the next (not in cases that lag)."""
import json
import math
import random
import struct
import sys
from array import array

SIZES = {"batch": 12, "features": 6, "hidden": 9, "wide": 7, "classes": 5}
SHAPES = {"w": ("features", "hidden"), "b": ("hidden",), "u": ("hidden", "wide"), "c": ("wide",), "v": ("wide", "classes"), "d": ("classes",),
          "mean": ("hidden",)}
STEPS, SMOOTHING, Z_LOSS = 8, 0.1, 0.02
CASES = {  # optimizer, frozen, without decay
    "lamb": ({"kind": "lamb", "rate": 0.02, "weight_decay": 0.1, "schedule": "wsd", "warmup": 2, "total": 7, "cooldown": 3, "final": 0.1, "ema": 0.9},
             "", "bcd"),
    "lion": ({"kind": "lion", "rate": 0.01, "weight_decay": 0.2, "schedule": "polynomial", "power": 2, "warmup": 2, "total": 6, "final": 0.2,
              "clip_norm": 0.05}, "c", "bd"),
    "muon": ({"kind": "muon", "rate": 0.02, "weight_decay": 0.1, "schedule": "step", "warmup": 2, "period": 3, "drop": 0.5, "ema": 0.8}, "d", "bu"),
    "adamw": ({"kind": "adamw", "rate": 0.02, "weight_decay": 0.3, "schedule": "linear", "warmup": 3, "total": 7, "final": 0.05, "clip_norm": 0.3,
               "ema": 0.5}, "u", "w"),
    "momentum": ({"kind": "momentum", "rate": 0.1, "weight_decay": 0.05, "schedule": "inverse_sqrt", "warmup": 4, "clip_norm": 0.2}, "wb", "v"),
    "sgd": ({"kind": "sgd", "rate": 0.3, "weight_decay": 0.05, "schedule": "cosine", "warmup": 2, "total": 6, "final": 0.1, "ema": 0.7}, "", "v"),
    "adafactor": ({"kind": "adafactor", "rate": 0.02, "schedule": "constant", "clip_norm": 0.4, "ema": 0.9}, "c", ""),
    "lags": ({"kind": "adamw", "rate": 0.05, "weight_decay": 0.3, "schedule": "linear_warmup", "warmup": 2, "clip_norm": 0.3, "ema": 0.5}, "d", "w"),
}


def data():
    draw = random.Random(3)
    single = lambda: struct.unpack("<f", struct.pack("<f", draw.uniform(-1, 1)))[0]
    weights = {n: [single() for _ in range(math.prod(SIZES[d] for d in dims))] for n, dims in SHAPES.items()}
    weights["mean"] = [0.0] * SIZES["hidden"]
    x = [[single() for _ in range(SIZES["features"])] for _ in range(SIZES["batch"])]
    y = [draw.randrange(SIZES["classes"]) for _ in range(SIZES["batch"])]
    for i in (2, 5, 6, 11):
        y[i] = -1
    return weights, x, y


# ---- What is written ---------------------------------------------------------------------------------

def graph(case):
    optimizer, frozen, plain = CASES[case]
    product = lambda name, a, b, dims: {"name": name, "op": "einsum", "inputs": [a, b], "dims": dims}
    plus = lambda name, a, b: {"name": name, "op": "add", "inputs": [a, b]}
    part = lambda name, a, factor: {"name": name, "op": "scale", "inputs": [a], "factor": factor}
    lags = case == "lags"
    variables = [{"name": n, "dims": list(d), "init": "zeros", "frozen": n in frozen or n == "mean", "decay": n not in plain} for n, d in SHAPES.items()]
    operations = [product("xw", "x", "w", ["batch", "hidden"]), plus("h0", "xw", "b"), {"name": "h1", "op": "tanh", "inputs": ["h0"]},
                  {"name": "h", "op": "subtract", "inputs": ["h1", "mean"]}, product("hu", "h", "u", ["batch", "wide"]), plus("g0", "hu", "c"),
                  {"name": "g", "op": "tanh", "inputs": ["g0"]}, product("gv", "g", "v", ["batch", "classes"]), plus("logits", "gv", "d"),
                  {"name": "losses", "op": "softmax_cross_entropy", "inputs": ["logits", "labels"], "dims": ["batch"], "smoothing": SMOOTHING,
                   "z_loss": Z_LOSS, "ignore": 1},
                  {"name": "zero", "op": "constant", "value": 0, "dims": [], "dtype": "int32"},
                  {"name": "counts", "op": "greater_equal", "inputs": ["labels", "zero"]},
                  {"name": "counted", "op": "cast", "inputs": ["counts"], "dtype": "float32"},
                  {"name": "count", "op": "reduce_sum", "inputs": ["counted"], "dims": []},
                  {"name": "sum", "op": "reduce_sum", "inputs": ["losses"], "dims": []}, {"name": "loss", "op": "divide", "inputs": ["sum", "count"]}]
    for operation in operations if lags else []:
        operation["stage"] = 1 if operation["name"] in ("xw", "h0", "h1", "h", "hu", "g0", "g") else 2
    if not lags:
        operations[3:3] = [{"name": "now", "op": "reduce_mean", "inputs": ["h1"], "dims": ["hidden"], "per_microbatch": 1}, part("kept", "mean", 0.9),
                           part("new", "now", 0.1), plus("next", "kept", "new")]
    return {"meshtf_graph": 1, "name": case, "dimensions": SIZES,
            "inputs": [{"name": "x", "dims": ["batch", "features"], "feed": "features"},
                       {"name": "labels", "dims": ["batch"], "dtype": "int32", "feed": "labels"}],
            "variables": variables, "operations": operations, "loss": "loss",
            "updates": [] if lags else [{"variable": "mean", "value": "next"}], "optimizer": optimizer}


def write_array(path, kind, shape, numbers):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, shape)
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00v\x00" + header.ljust(117).encode() + b"\n" + numbers.tobytes())


def write(folder):
    weights, x, y = data()
    header, body = {}, b""
    for name, dims in SHAPES.items():
        block = array("d", weights[name]).tobytes()
        header[name] = {"dtype": "F64", "shape": [SIZES[d] for d in dims], "data_offsets": [len(body), len(body) + len(block)]}
        body += block
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(folder + "/weights.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)
    write_array(folder + "/x.npy", "<f4", (12, 6), array("f", [e for row in x for e in row]))
    write_array(folder + "/y.npy", "<i4", (12,), array("i", y))
    for case in CASES:
        with open(f"{folder}/{case}.json", "w") as file:
            json.dump(graph(case), file)


# ---- What should come of it --------------------------------------------------------------------------

def rows(flat, n):
    return [flat[i:i + n] for i in range(0, len(flat), n)]


def times(a, b):
    return [[sum(p * q for p, q in zip(row, column)) for column in zip(*b)] for row in a]


def turned(a):
    return [list(column) for column in zip(*a)]


def flat(a):
    return [e for row in a for e in row]


def norm(a):
    return math.sqrt(sum(e * e for e in a))


def columns(a):
    return [sum(column) for column in zip(*a)]


def loss_and_gradients(w, x, y):
    """Of the mean over labels that count, with the first layer's mean over the batch."""
    hidden, wide, classes = SIZES["hidden"], SIZES["wide"], SIZES["classes"]
    u, v = rows(w["u"], wide), rows(w["v"], classes)
    h1 = [[math.tanh(e + b) for e, b in zip(row, w["b"])] for row in times(x, rows(w["w"], hidden))]
    h = [[e - m for e, m in zip(row, w["mean"])] for row in h1]
    g = [[math.tanh(e + c) for e, c in zip(row, w["c"])] for row in times(h, u)]
    logits = [[e + d for e, d in zip(row, w["d"])] for row in times(g, v)]
    count, loss, slope = sum(label >= 0 for label in y), 0.0, []
    for row, label in zip(logits, y):
        log_sum = math.log(sum(math.exp(e) for e in row))
        share = [math.exp(e - log_sum) for e in row]
        wanted = [(1 - SMOOTHING) * (i == label) + SMOOTHING / classes for i in range(classes)]
        if label >= 0:
            loss += (log_sum - sum(p * e for p, e in zip(wanted, row)) + Z_LOSS * log_sum ** 2) / count
        slope.append([(s * (1 + 2 * Z_LOSS * log_sum) - p) / count * (label >= 0) for s, p in zip(share, wanted)])
    dg = [[e * (1 - t * t) for e, t in zip(a, b)] for a, b in zip(times(slope, turned(v)), g)]
    dh = [[e * (1 - t * t) for e, t in zip(a, b)] for a, b in zip(times(dg, turned(u)), h1)]
    return loss, {"v": flat(times(turned(g), slope)), "d": columns(slope), "u": flat(times(turned(h), dg)), "c": columns(dg),
                  "w": flat(times(turned(x), dh)), "b": columns(dh)}, [e / len(y) for e in columns(h1)]


def rate(o, t):
    r, warmup, total, final = o["rate"], o.get("warmup", 0), o.get("total", 0), o.get("final", 0)
    ramp = min(1, t / warmup) if warmup else 1
    past = 1 if total <= warmup else min(1, max(0, (t - warmup) / (total - warmup)))
    return {"constant": lambda: r, "linear_warmup": lambda: r * ramp,
            "inverse_sqrt": lambda: r * min(ramp, math.sqrt(max(warmup, 1) / t)),
            "cosine": lambda: r * ramp * (final + (1 - final) * (1 + math.cos(math.pi * past)) / 2),
            "linear": lambda: r * ramp * (final + (1 - final) * (1 - past)),
            "polynomial": lambda: r * ramp * (final + (1 - final) * (1 - past) ** o["power"]),
            "wsd": lambda: r * ramp * (final + (1 - final) * min(1, max(0, total - t) / o["cooldown"])),
            "step": lambda: r * ramp * o["drop"] ** max(0, (t - warmup) // o["period"])}[o["schedule"]]()


def orthogonal(m):
    """Newton and Schulz's iteration, as Muon's authors publish it."""
    size = math.sqrt(norm(flat(m)) ** 2 + 1e-14)
    m = [[e / size for e in row] for row in m]
    for _ in range(5):
        gram = times(m, turned(m))
        square = times(gram, gram)
        more = times([[-4.7750 * a + 2.0315 * b for a, b in zip(p, q)] for p, q in zip(gram, square)], m)
        m = [[3.4445 * a + b for a, b in zip(p, q)] for p, q in zip(m, more)]
    return m


def without_size(g, state, t, dims):
    """Adafactor's direction, with b = 1 - t^-.8 and 1e-30 beside each square, cut at a root mean square of 1."""
    keep = 1 - t ** -0.8
    moment = lambda name, new: state.__setitem__(name, [keep * a + (1 - keep) * b for a, b in zip(state.get(name, [0] * len(new)), new)])
    squares = [e * e + 1e-30 for e in g]
    if len(dims) == 2:
        n = SIZES[dims[1]]
        moment("rows", [sum(row) / n for row in rows(squares, n)])
        moment("columns", [e * n / len(g) for e in columns(rows(squares, n))])
        middle = sum(state["rows"]) / len(state["rows"])
        scales = [r * c / middle for r in state["rows"] for c in state["columns"]]
    else:
        moment("all", squares)
        scales = state["all"]
    u = [e / math.sqrt(s) for e, s in zip(g, scales)]
    return [e / max(1, norm(u) / math.sqrt(len(u))) for e in u]


def updated(o, w, g, state, t, decay, dims):
    """One variable behind one step of the optimizer; what makes the classes is no matrix to Muon."""
    kind, r = o["kind"], rate(o, t)
    moment = lambda name, beta, new, share=None: state.__setitem__(
        name, [beta * a + (1 - beta if share is None else share) * b for a, b in zip(state.get(name, [0] * len(new)), new)])
    if kind == "sgd":
        direction = [e + decay * p for e, p in zip(g, w)]
    elif kind == "momentum":
        moment("v", 0.9, [e + decay * p for e, p in zip(g, w)], 1)
        direction = state["v"]
    elif kind == "lion":
        direction = [math.copysign(0.9 * a + 0.1 * b != 0, 0.9 * a + 0.1 * b) + decay * p for a, b, p in zip(state.get("m", [0] * len(g)), g, w)]
        moment("m", 0.99, g)
    elif kind == "muon" and len(dims) == 2 and "classes" not in dims:
        moment("m", 0.95, g, 1)
        turn = flat(orthogonal(rows([e + 0.95 * m for e, m in zip(g, state["m"])], SIZES[dims[1]])))
        direction = [0.2 * math.sqrt(max(SIZES[d] for d in dims)) * e + decay * p for e, p in zip(turn, w)]
    elif kind == "adafactor":
        direction = without_size(g, state, t, dims)
    else:
        beta, epsilon = {"muon": (0.95, 1e-8), "lamb": (0.999, 1e-6)}.get(kind, (0.999, 1e-8))
        moment("m", 0.9, g)
        moment("v", beta, [e * e for e in g])
        direction = [m / (1 - 0.9 ** t) / (math.sqrt(v / (1 - beta ** t)) + epsilon) + decay * p for m, v, p in zip(state["m"], state["v"], w)]
        if kind == "lamb" and norm(w) > 0 and norm(direction) > 0:
            direction = [e * norm(w) / norm(direction) for e in direction]
    return [p - r * e for p, e in zip(w, direction)]


def train(case, late):
    o, frozen, plain = CASES[case]
    weights, x, y = data()
    trained = [n for n in SHAPES if n not in frozen and n != "mean"]
    states, means, losses, history = {n: {} for n in trained}, {}, [], [weights]
    for t in range(1, STEPS + 1):
        behind = history[max(0, t - 2)]
        loss, gradients, now = loss_and_gradients({n: (behind if n in late else weights)[n] for n in weights}, x, y)
        losses.append(loss)
        size = norm([e for n in trained for e in gradients[n]])
        share = min(1, o["clip_norm"] / size) if "clip_norm" in o else 1
        new = dict(weights)
        for n in trained:
            decay = 0 if n in plain else o.get("weight_decay", 0)
            new[n] = updated(o, weights[n], [share * e for e in gradients[n]], states[n], t, decay, SHAPES[n])
            mean = means.get(n, new[n])
            means[n] = [o.get("ema", 0) * a + (1 - o.get("ema", 0)) * b for a, b in zip(mean, new[n])]
        if case != "lags":
            new["mean"] = [0.9 * a + 0.1 * b for a, b in zip(weights["mean"], now)]
        weights = new
        history.append(new)
    return losses, {**weights, **({"ema/" + n: m for n, m in means.items()} if "ema" in o else {})}


def judge(case, metrics, checkpoint, late=""):
    losses, weights = train(case, late)
    with open(metrics) as file:
        ours = [json.loads(line)["loss"] for line in file if '"loss"' in line]
    with open(checkpoint, "rb") as file:
        content = file.read()
    n = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + n])
    worst = max(abs(a - b) for a, b in zip(ours, losses)) if len(ours) == STEPS else math.inf
    for name, wanted in weights.items():
        begin, end = header[name]["data_offsets"]
        got = array("d", content[8 + n + begin:8 + n + end])
        worst = max([worst] + [abs(a - b) for a, b in zip(got, wanted)] + ([math.inf] if len(got) != len(wanted) else []))
    print(f"# {case}: {worst:.1e} off")
    return worst < 1e-9


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(sys.argv[2])
    else:
        sys.exit(not judge(*sys.argv[2:]))
