# SPDX-License-Identifier: GPL-3.0-or-later
"""PaSE's strategy for a network of pictures as a layout of our training graph: pase_pictures.py NETWORK DEVICES PLAN LAYOUT
reads any plan of it; with `mesh` instead of PLAN it prints the mesh.

The strategies are the optima of PaSE's own cost tables (baidu-research/PaSE's examples of 128 pictures; shared data pase/, solved and
proven there): for every operation into how many parts batch, channels read (k) and channels made (n) are cut. So many parts are so many axes here.
Convolutions that divide what they read add up partial sums, as the dense layers do; what follows divides the sum, or
not. What goes back is divided as what went forward, and sums are scattered at once where that is asked for.
"""
import json
import re
import sys

# For each network and number of devices: the mesh, and for each operation, the first that fits, what each axis divides: batch (b),
# channels that a product reads (k), channels that it makes or that others have (n), nothing (.).
DENSE = [("classifier", "kn"), ("losses", ".n"), ("", "bb")]
ALEXNET = [("dense7", "nk"), ("dense6", "kn")] + DENSE
FOUR = ("rows:4", [("classifier", "k"), ("losses", "."), ("", "b")])
NETWORKS = {
    "alexnet": {
        "4": ("rows:4", [("dense7", "n"), ("dense6", "k")] + FOUR[1]),
        "8": ("rows:4;cols:2", ALEXNET),
        "16": ("rows:8;cols:2", ALEXNET),
        "32": ("rows:4;more:2;cols:4", [
            ("dense7", "knn"), ("dense6|classifier", "nkk"), ("losses", "n.."),
            ("conv[45]/y", "bkb"), ("conv[45]|pool5", "b.b"), ("", "bbb")]),
        "64": ("rows:4;more:2;others:2;cols:4", [
            ("dense7", "knnn"), ("dense6|classifier", "nkkk"), ("losses", "n..."),
            ("conv[45]/y", "bkkb"), ("conv[45]|pool5", "b..b"), ("conv[23]/y", "bbkb"), ("", "bb.b")]),
    },
    "inception3": {"4": FOUR, "8": ("rows:4;cols:2", DENSE)},
    "resnet": {
        "4": FOUR,
        "8": ("rows:4;cols:2", [
            ("mean|stage4/./(sum|relu)", "bn"), ("stage4/0/(conv1|shortcut)/y", "bb"), ("stage4/./conv[12]/y", "bk"),
            ("stage4/./conv2/", "b."), ("stage4", "bn")] + DENSE),
    },
}
SECOND = {"max_pool": "/index", "momentum": "/v"}  # what an operation makes beside its result

network, devices, plan = sys.argv[1:4]
mesh, places = NETWORKS[network][devices]
if plan == "mesh":
    print(mesh)
    sys.exit()
axes = [axis.split(":")[0] for axis in mesh.split(";")]
graph = json.load(open(plan))["graph"]
dims_of = {t["name"]: t["dims"] for t in graph["inputs"] + graph["variables"]}
weights = {t["name"]: t["dims"] for t in graph["variables"] if t["name"].endswith("/w")}
made = {op["name"]: op["dims"] for op in graph["operations"] if op["name"][:-1] + "w" in weights}


def forward(op):
    """The operation of the forward pass that an operation belongs to, by name."""
    name, inputs = op["name"], op["inputs"]
    weight = [i for i in inputs if i in weights]
    if weight:
        return weight[0][:-1] + "y"
    norm = [i for i in inputs if "/norm/" in i]
    if op["op"].startswith("normalize") and norm:
        return norm[0].split("/norm/")[0] + "/norm"
    if op["op"] == "relu_grad":
        return inputs[0]
    if name.startswith("back/") and "/y/" in name and "/norm/" not in name:
        return name[5:name.index("/y/") + 2]
    name = re.sub("^((grad|back|update|next|momentum)/)+(v/)?", "", name)
    return name[:-1] + "y" if name in weights else name


def place(name):
    return next(roles for pattern, roles in places if re.match(pattern, name))


def dimensions(roles, name, over):
    """What each axis divides of the dimensions `over`, for the operation of the forward pass called `name`."""
    weight = weights.get(name[:-1] + "w", ()) if name in made else ()
    channels = [d for d in over if re.match("(other_)*(channels_|classes|dense)", d)]
    reads = [d for d in channels if d in weight and d not in made[name]]
    makes = [d for d in channels if d not in reads]
    pick = {"b": [d for d in over if d == "batch"], "k": reads, "n": makes, ".": []}
    return [(pick[role] or [None])[-1] for role in roles]


def keep(name, roles, owner):
    divided = dimensions(roles, owner, dims_of[name])
    if any(divided):
        tensors[name] = {a: d or "replicated" for a, d in zip(axes, divided)}


tensors, operations = {}, {}
for op in graph["operations"]:
    name, owner = op["name"], forward(op)
    roles = place(owner)
    first = dims_of[op["inputs"][0]] if op["inputs"] else []
    also = name + SECOND.get(op["op"], "")
    dims_of[name] = dims_of[also] = op.get("dims", first)
    over = list(dict.fromkeys(d for i in op["inputs"] + [name] for d in dims_of[i]))
    operations[name] = {a: d or "duplicated" for a, d in zip(axes, dimensions(roles, owner, over))}
    keep(name, roles, owner)
    keep(also, roles, owner)
for name in [t["name"] for t in graph["inputs"] + graph["variables"]]:
    owner = forward({"name": name, "inputs": [], "op": ""})
    keep(name, place({"image": "conv1/y", "labels": "losses"}.get(name, owner)), owner)
json.dump({"mesh": mesh, "layout": {"rules": None, "tensors": tensors, "operations": operations}}, open(sys.argv[4], "w"))
