# SPDX-License-Identifier: GPL-3.0-or-later
"""check_framework_config.py deepspeed|maxtext|torchtitan PLAN CONFIG: reads an exported configuration as its framework
does: every name known, every value of its type, and batches and degrees what the plan's mesh and batch make."""
import json
import math
import sys

COUNT = lambda value: type(value) is int and value > 0
SWITCH = {"enabled": lambda value: type(value) is bool}
DEEPSPEED = {
    "train_batch_size": COUNT,
    "train_micro_batch_size_per_gpu": COUNT,
    "gradient_accumulation_steps": COUNT,
    "gradient_clipping": lambda value: value > 0,
    "bf16": SWITCH,
    "zero_optimization": {"stage": lambda value: value in (0, 1, 2, 3)},
    "tensor_parallel": {"autotp_size": COUNT},
    "activation_checkpointing": {
        "partition_activations": lambda value: type(value) is bool,
        "number_checkpoints": COUNT,
    },
}
DEGREES = ("data", "fsdp", "tensor", "tensor_sequence")
MAXTEXT = {f"ici_{kind}_parallelism": lambda text: int(text) > 0 for kind in DEGREES}
MAXTEXT.update({
    "per_device_batch_size": lambda text: float(text) > 0,
    "gradient_accumulation_steps": lambda text: int(text) > 0,
    "dtype": lambda text: text in ("float32", "bfloat16"),
    "weight_dtype": lambda text: text in ("float32", "bfloat16"),
    "remat_policy": lambda text: text in ("none", "minimal", "full"),
    "shard_optimizer_over_data": lambda text: text in ("true", "false"),
})

TORCHTITAN = {
    "parallelism": {
        "data_parallel_replicate_degree": COUNT,
        "data_parallel_shard_degree": COUNT,
        "tensor_parallel_degree": COUNT,
        "fsdp_reshard_after_forward": lambda value: value in ("default", "always", "never"),
    },
    "training": {
        "seq_len": COUNT,
        "local_batch_size": COUNT,
        "global_batch_size": COUNT,
        "mixed_precision_param": lambda value: value in ("bfloat16", "float32"),
    },
    "activation_checkpoint": {
        "mode": lambda value: value in ("none", "selective", "full"),
        "selective_ac_option": lambda value: value == "op" or int(value) > 0,
    },
}


def read(config, known, place=""):
    """Every entry is known there, and its value is one that the framework takes."""
    for key, value in config.items():
        assert key in known, f"{place}{key} is no setting"
        if isinstance(known[key], dict):
            read(value, known[key], f"{place}{key}.")
        else:
            assert known[key](value), f"{place}{key} cannot be {value!r}"


def deepspeed(text, devices):
    """The whole batch; DeepSpeed refuses to start where the product differs (_batch_assertion)."""
    config = json.loads(text)
    read(config, DEEPSPEED)
    ranks, rest = divmod(devices, config.get("tensor_parallel", {}).get("autotp_size", 1))
    assert rest == 0, "autotp_size does not divide the devices"
    batch = config["train_micro_batch_size_per_gpu"] * config["gradient_accumulation_steps"] * ranks
    assert config["train_batch_size"] == batch, f"train_batch_size is not {batch}"
    return batch


def maxtext(text, devices):
    """The whole batch: per_device_batch_size of all devices, accumulated."""
    lines = [line.split("=") for line in text.splitlines()]
    config = dict(lines)
    assert len(config) == len(lines), "a setting is given twice"
    read(config, MAXTEXT)
    degrees = math.prod(int(config[f"ici_{kind}_parallelism"]) for kind in DEGREES)
    assert degrees == devices, f"parallelism over {degrees} devices of {devices}"
    micro_batch = float(config["per_device_batch_size"]) * devices
    assert micro_batch == int(micro_batch), "devices share no whole number of examples"
    return int(micro_batch) * int(config["gradient_accumulation_steps"])


def torchtitan(text, devices):
    """The whole batch, which is a multiple of what all ranks of data parallelism take at once."""
    config = {}
    for line in text.splitlines():
        name, value = line.removeprefix("--").split(" ")
        section, key = name.split(".")
        assert key not in config.setdefault(section, {}), f"{name} is given twice"
        config[section][key] = int(value) if value.isdigit() else value
    read(config, TORCHTITAN)
    degrees, training = config["parallelism"], config["training"]
    data = degrees["data_parallel_replicate_degree"] * degrees["data_parallel_shard_degree"]
    assert data * degrees["tensor_parallel_degree"] == devices, f"not parallel over {devices} devices"
    assert training["global_batch_size"] % (training["local_batch_size"] * data) == 0, "no whole accumulation"
    return training["global_batch_size"]


framework, plan, config = sys.argv[1], json.load(open(sys.argv[2])), open(sys.argv[3]).read()
devices = math.prod(int(axis.split(":")[1]) for axis in plan["mesh"].split(";"))
batch = {"deepspeed": deepspeed, "maxtext": maxtext, "torchtitan": torchtitan}[framework](config, devices)
assert batch == plan["graph"]["dimensions"]["batch"], f"a batch of {batch}"
print(f"{framework} takes a batch of {batch} on {devices} devices")
