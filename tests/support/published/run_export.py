# SPDX-License-Identifier: GPL-3.0-or-later
"""run_export.py PLAN EXPORT: runs an exported module against the stubs and places every tensor of the
plan that it knows, so that the stubs check each call's arguments."""
import json
import runpy
import sys

sys.path.insert(0, "tests/support/published/python_stubs")
from torch.distributed.tensor import DTensor

plan = json.load(open(sys.argv[1]))
module = runpy.run_path(sys.argv[2])
sizes = plan["graph"]["dimensions"]
known = module.get("SPECS") or module["PLACEMENTS"]
torch = "PLACEMENTS" in module
shapes = {t["name"]: t["dims"] for key in ("inputs", "variables") for t in plan["graph"][key]}
shapes.update({o["name"]: o["dims"] for o in plan["graph"]["operations"] if "dims" in o})
placed = 0
for name in known:
    if name not in shapes:
        continue
    shape = tuple(sizes[d] for d in shapes[name])
    module["constrain"](name, DTensor(shape) if torch else shape)
    placed += 1
print(placed, "tensors placed")
sys.exit(placed == 0)
