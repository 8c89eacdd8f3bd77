#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""meshtf-run beside PyTorch on convolutional networks, one core, turn by turn. Run by bench_pictures.sh.

    seconds     processor seconds of a step, the median: both run on one thread, and other work on the
                machine does not count
    MiB         resident at most; the arena of ours is predicted to the byte
    losses      of steps from equal weights on equal data: the largest difference, relative (rounding grows
                step by step where batch norms follow one another)

PyTorch is given the faster of its orders of memory (channels last or first) for each model. The networks
are torchvision's ResNet-50, the same with the 3 x 3 stem that small pictures often take, and LBANN's 3-D U-Net
as `meshtf-plan model` writes them. With --peer MODEL this is PyTorch's side.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from weights_file import write_weights

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = int(os.environ.get("BENCH_STEPS", "3"))
TURNS = int(os.environ.get("BENCH_TURNS", "2"))
ONLY = os.environ.get("BENCH_MODELS", "")
RATE = 0.01

MODELS = {
    "resnet-50": (["resnet", "--preset=resnet-50", "--image=64", "--batch=16"], (16, 3, 64, 64), (16,), 1000),
    "small-stem": (["resnet", "--preset=resnet-50", "--image=64", "--batch=16", "--stem=small"], (16, 3, 64, 64), (16,), 1000),
    "unet-3d": (["unet", "--preset=unet-3d", "--image=32", "--batch=1"], (1, 1, 32, 32, 32), (1, 32, 32, 32), 3),
}
ALONE = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


# ---- PyTorch's side --------------------------------------------------------------------------------

def unet(torch):
    """Down blocks to 64, 128, 256, a bottom of 512; what goes up is as wide as the one below."""
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, read, between, written):
            super().__init__()
            self.conv1 = nn.Conv3d(read, between, 3, padding=1, bias=False)
            self.norm1 = nn.BatchNorm3d(between)
            self.conv2 = nn.Conv3d(between, written, 3, padding=1, bias=False)
            self.norm2 = nn.BatchNorm3d(written)

        def forward(self, x):
            x = F.relu(self.norm1(self.conv1(x)), inplace=True)
            return F.relu(self.norm2(self.conv2(x)), inplace=True)

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList([Block(1, 32, 64), Block(64, 64, 128), Block(128, 128, 256), Block(256, 256, 512)])
            self.up = nn.ModuleList()
            for below, beside in ((512, 256), (256, 128), (128, 64)):
                self.up.append(nn.ConvTranspose3d(below, below, 2, stride=2, bias=False))
                self.up.append(Block(below + beside, beside, beside))
            self.classes = nn.Conv3d(64, 3, 1, bias=False)

        def forward(self, x):
            levels = []
            for block in self.down[:-1]:
                levels.append(block(x))
                x = F.max_pool3d(levels[-1], 2)
            x = self.down[-1](x)
            for widen, block in zip(self.up[::2], self.up[1::2]):
                x = block(torch.cat([levels.pop(), widen(x)], 1))
            return self.classes(x)

    return UNet()


def build(name, torch):
    if name == "unet-3d":
        return unet(torch)
    import torchvision
    model = torchvision.models.resnet50()
    if name == "small-stem":
        model.conv1 = torch.nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        model.maxpool = torch.nn.Identity()
    return model


def in_our_order(model, torch):
    """The weights as meshtf-plan's variables have them, in the order of the graph."""
    for module in model.modules():
        for weight in module.parameters(recurse=False):
            if weight.dim() > 1 and isinstance(module, (torch.nn.Linear, torch.nn.ConvTranspose3d)):
                yield weight.transpose(0, 1)
            else:
                yield weight


def weights_of(graph, model, torch):
    """Under the names of the graph's trained variables; running statistics begin as it says."""
    weights, arrays, sizes = in_our_order(model, torch), {}, dict(graph["dimensions"])
    for variable in graph["variables"]:
        if variable.get("frozen"):
            weight = torch.full([sizes[d] for d in variable["dims"]], 1.0 if variable["init"] == "ones" else 0.0)
        else:
            weight = next(weights)
        assert list(weight.shape) == [sizes[d] for d in variable["dims"]], variable["name"]
        arrays[variable["name"]] = weight.detach().numpy()
    return arrays


def peer(a):
    import resource
    import time
    import numpy
    import torch
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)  # off, products of tiny gradients take three times as long on Intel
    torch.manual_seed(1)
    model = build(a.peer, torch)
    if a.weights:
        write_weights(a.weights, weights_of(json.load(open(a.graph)), model, torch))
    x = torch.from_numpy(numpy.load(os.path.join(a.data, "x.npy")))
    labels = torch.from_numpy(numpy.load(os.path.join(a.data, "labels.npy")).astype("int64"))
    if a.channels_last:
        order = torch.channels_last if x.dim() == 4 else torch.channels_last_3d
        model, x = model.to(memory_format=order), x.to(memory_format=order)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)
    for _ in range(a.steps):
        start = time.process_time()
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        print(time.process_time() - start, loss.item())
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


# ---- The comparison --------------------------------------------------------------------------------

def run(command):
    """Standard output and peak resident MiB."""
    with tempfile.TemporaryFile("w+") as out:
        child = subprocess.Popen(command, stdout=out, env=ALONE)
        _, status, usage = os.wait4(child.pid, 0)
        if status != 0:
            sys.exit(f"{' '.join(command)}: failed")
        out.seek(0)
        return out.read(), usage.ru_maxrss / 1024


def write_data(folder, shape, label_shape, classes):
    import numpy
    random = numpy.random.default_rng(3)
    numpy.save(os.path.join(folder, "x.npy"), random.standard_normal(shape).astype("float32"))
    numpy.save(os.path.join(folder, "labels.npy"), random.integers(0, classes, label_shape).astype("int32"))


def turn_ours(folder, plan):
    metrics = os.path.join(folder, "metrics.jsonl")
    data = [f"--data={folder}/x.npy", f"--data={folder}/labels.npy", "--held-out=0"]
    _, resident = run(["meshtf-run", plan, f"--steps={STEPS + 1}", f"--metrics={metrics}", f"--init={folder}/weights", *data])
    lines = [json.loads(line) for line in open(metrics)]
    return [line["processor_seconds"] for line in lines[1:]], resident, [line["loss"] for line in lines]


def turn_theirs(folder, name, *more):
    text, _ = run(["/usr/bin/python3", os.path.abspath(__file__), f"--peer={name}", f"--data={folder}",
                   f"--graph={folder}/graph.json", f"--steps={STEPS + 1}", *more])
    *lines, resident = text.splitlines()
    rows = [tuple(map(float, line.split())) for line in lines]
    return [seconds for seconds, _ in rows[1:]], float(resident), [loss for _, loss in rows]


def compare(name):
    settings, shape, label_shape, classes = MODELS[name]
    with tempfile.TemporaryDirectory() as folder:
        graph, plan = os.path.join(folder, "graph.json"), os.path.join(folder, "plan.json")
        run(["meshtf-plan", "model", *settings, "--optimizer=momentum", "--clip-norm=0", "--schedule=constant",
             f"--rate={RATE}", "-o", graph])
        run(["meshtf-plan", "search", graph, "--machine=cpu-host", "--devices=1", "--recompute=cheap", "-o", plan])
        write_data(folder, shape, label_shape, classes)
        ours, first, last = [], [], []
        for i in range(TURNS):
            first.append(turn_theirs(folder, name, *([f"--weights={folder}/weights"] if i == 0 else [])))
            last.append(turn_theirs(folder, name, "--channels-last"))
            ours.append(turn_ours(folder, plan))
    median = lambda turns: statistics.median([s for turn in turns for s in turn[0]])
    theirs = min(first, last, key=median)
    apart = max(abs(a - b) / abs(b) for a, b in zip(ours[0][2], first[0][2]))
    mine, their = max(t[1] for t in ours), min(t[1] for t in theirs)
    print(f"{name:12} {median(ours):9.2f} {median(theirs):9.2f} {median(theirs) / median(ours):7.2f}"
          f" {mine:9.0f} {their:9.0f} {mine / their:7.2f}   {apart:.1e}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", choices=MODELS)
    parser.add_argument("--graph")
    parser.add_argument("--data")
    parser.add_argument("--weights", help="write the initial weights there")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--steps", type=int, default=3)
    a = parser.parse_args()
    if a.peer:
        return peer(a)
    print(f"{'model':12} {'ours s':>9} {'torch s':>9} {'ratio':>7} {'MiB':>9} {'torch':>9} {'ratio':>7}   losses")
    for name in MODELS:
        if not ONLY or name in ONLY.split():
            compare(name)


main()
