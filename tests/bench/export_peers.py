# SPDX-License-Identifier: GPL-3.0-or-later
"""export_peers.py FOLDER: NAME.json beside NAME.jax, .dtensor, .shardy and .onnx, as meshtf-plan exports plans of
eight devices, given to the libraries that they are written for, as far as these are installed. A line each: how many
tensors lie where the plan says, or what went wrong (and exit 1)."""
import glob
import json
import os
import runpy
import subprocess
import sys

os.environ.update(JAX_PLATFORMS="cpu", XLA_FLAGS="--xla_force_host_platform_device_count=8", OMP_NUM_THREADS="1")
folder = sys.argv[1]
names = sorted(os.path.basename(path)[:-5] for path in glob.glob(os.path.join(folder, "*.json")))
failures = 0


def path_of(name, form):
    return os.path.join(folder, f"{name}.{form}")


def shapes_of(name):
    with open(path_of(name, "json")) as file:
        graph = json.load(file)["graph"]
    tensors = graph["inputs"] + graph["variables"] + [o for o in graph["operations"] if "dims" in o]
    return {t["name"]: tuple(graph["dimensions"][d] for d in t["dims"]) for t in tensors}


def tell(peer, name, verdict):
    print(f"{peer:10} {name:16} {verdict}", flush=True)


def each(peer, try_one):
    global failures
    for name in names:
        try:
            tell(peer, name, try_one(name))
        except Exception as error:
            failures += 1
            tell(peer, name, f"FAILED: {str(error).splitlines()[0][:200]}")


def as_planned(right, tensors):
    if right != tensors:
        raise ValueError(f"{tensors - right} of {tensors} tensors lie elsewhere")
    return f"{tensors} tensors as planned"


def jax_places():
    import jax
    import jax.numpy as jnp

    def one(name):
        module, shapes = runpy.run_path(path_of(name, "jax")), shapes_of(name)
        known = [t for t in module["SPECS"] if t in shapes]
        with jax.set_mesh(module["mesh"]):
            step = jax.jit(lambda arrays: {t: module["constrain"](t, x) for t, x in arrays.items()})
            made = step({t: jnp.zeros(shapes[t]) for t in known})
        wanted = {t: jax.sharding.NamedSharding(module["mesh"], module["SPECS"][t]) for t in known}
        return as_planned(sum(made[t].sharding.is_equivalent_to(wanted[t], len(shapes[t])) for t in known), len(known))

    each(f"jax {jax.__version__}", one)


def shardy_parses():
    import jax
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir

    def one(name):
        with mlir.make_ir_context(), open(path_of(name, "shardy")) as file:
            ir.Module.parse(file.read()).operation.verify()
        return "parsed and verified"

    each(f"shardy {jax.__version__}", one)


def onnx_is_sound():
    import onnx
    import onnxruntime

    def one(name):
        onnx.checker.check_model(path_of(name, "onnx"), full_check=True)
        nodes = onnx.load(path_of(name, "onnx")).graph.node
        onnxruntime.InferenceSession(path_of(name, "onnx"), providers=["CPUExecutionProvider"])
        annotated = sum(len(node.device_configurations) > 0 for node in nodes)
        if annotated == 0:
            raise ValueError("no node is annotated")
        return f"sound, {annotated} of {len(nodes)} nodes annotated, loaded by onnxruntime {onnxruntime.__version__}"

    each(f"onnx {onnx.__version__}", one)


def dtensor_places():
    """One of eight ranks."""
    global failures
    import torch
    from torch import distributed

    distributed.init_process_group("gloo")

    def one(name):
        module, shapes = {}, shapes_of(name)
        with open(path_of(name, "dtensor")) as file:
            exec(compile(file.read().replace('"cuda"', '"cpu"'), name, "exec"), module)
        whole = {t: p for t, p in module["PLACEMENTS"].items() if t in shapes and not any(s.is_partial() for s in p)}
        made = {t: module["constrain"](t, module["place"](t, torch.zeros(shapes[t]))) for t in whole}
        return as_planned(sum(tuple(made[t].placements) == tuple(whole[t]) for t in whole), len(whole))

    if distributed.get_rank() > 0:
        sys.stdout = open(os.devnull, "w")
    each(f"torch {torch.__version__.split('+')[0]}", one)
    distributed.destroy_process_group()
    sys.exit(failures > 0)


if "RANK" in os.environ:
    dtensor_places()
for peer in (jax_places, shardy_parses, onnx_is_sound):
    try:
        peer()
    except ImportError as error:
        print(f"{peer.__name__}: not tried, {error}", flush=True)
try:
    from torch.distributed.tensor import Shard  # noqa: F401
except ImportError as error:
    print(f"dtensor_places: not tried, {error}", flush=True)
else:
    ranks = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "8", __file__, folder]
    failures += subprocess.run(ranks, stderr=subprocess.DEVNULL).returncode != 0
sys.exit(failures > 0)
