#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""meshtf-run beside PyTorch on the same models, turn by turn: medians over the samples whose wall time
is at most 1.05 times the processor time. Run by bench_training.sh.

    model               items/s ours, PyTorch's, their ratio; resident MiB of both; the largest
                        difference of losses from equal weights on one text; on two ranks in the
                        layout that the search chooses, on the machine that --calibrate measures first
    model, batch 2B     two ranks with twice the examples beside one rank with them once, where the
                        batch is split ("at once": with --no-overlap) and where the search chooses:
                        items/s over those of one rank; milliseconds a step in exchanges, what
                        nothing computes beside
    fraction of sgemm   flop of the step's products over step time over the rate of a large product
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = int(os.environ.get("BENCH_STEPS", "4"))
TURNS = int(os.environ.get("BENCH_TURNS", "3"))
ONLY = os.environ.get("BENCH_MODELS", "")

SMALL = {"layers": 4, "d-model": 256, "heads": 4, "d-kv": 64, "d-ff": 1024, "length": 128, "batch": 16}
LARGE = {"layers": 12, "d-model": 768, "heads": 12, "d-kv": 64, "d-ff": 3072, "vocab": 50257, "batch": 4}
MODELS = {
    "gpt2-256": ("gpt", {**LARGE, "length": 256}),
    "gpt2-64": ("gpt", {**LARGE, "length": 64}),
    "gpt-8192": ("gpt", {**SMALL, "vocab": 8192}),
    "gpt-256": ("gpt", {**SMALL, "vocab": 256}),
    "mnist": ("mnist", {"batch": 128}),
}
# Ways to run ours: a "machine" is replaced by the one at hand, and the search chooses the layout.
VARIANTS = {
    "f32": {},
    "bf16": {"precision": "bf16"},
    "2 ranks": {"ranks": 2, "machine": True},
    "2B": {"ranks": 2, "batches": 2},
    "2B search": {"ranks": 2, "batches": 2, "machine": True},
    "2B at once": {"ranks": 2, "batches": 2, "options": ["--no-overlap"]},
}
# What plans are asked for beside the layout: GPT-2 small recomputes what is cheap, for memory.
PLANS = {"gpt2-256": ["--recompute=cheap"], "gpt2-64": ["--recompute=cheap"]}


def environment(threads=1):
    return {**os.environ, "OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}


def run(command, **options):
    """Standard output and peak resident MiB of the largest process."""
    with tempfile.TemporaryFile("w+") as out:
        child = subprocess.Popen(command, stdout=out, env=options.get("env", environment()))
        _, status, usage = os.wait4(child.pid, 0)
        if status != 0:
            sys.exit(f"{' '.join(command)}: failed")
        out.seek(0)
        return out.read(), usage.ru_maxrss / 1024


def steady(samples):
    """Median wall seconds of the samples that had the processor to themselves."""
    good = [wall for wall, processor in samples if wall <= 1.05 * processor]
    return statistics.median(good or [processor for _, processor in samples]), len(good)


def flags(settings):
    return [f"--{name}={value}" for name, value in settings.items()]


class Ours:
    def __init__(self, folder, family, settings, ranks=1, precision="f32", batches=1, machine=None, asked=(),
                 options=()):
        self.ranks, self.folder, self.options = ranks, folder, list(options)
        self.settings = {**settings, "batch": batches * settings["batch"]}
        graph, self.plan = os.path.join(folder, "graph.json"), os.path.join(folder, "plan.json")
        model = ["gpt", "--preset=gpt2-small", "--clip-norm=0"] if family == "gpt" else ["mlp", "--preset=mnist"]
        run(["meshtf-plan", "model", *model, "--schedule=constant", "--rate=3e-4", *flags(self.settings), "-o", graph])
        layout = ["search", graph, f"--machine={machine}", f"--devices={ranks}", "--seconds=60"] if machine else [
            "estimate", graph, "--machine=cpu-host", f"--mesh=all:{ranks}", "--layout=batch:all"]
        run(["meshtf-plan", *layout, f"--precision={precision}", *asked, "-o", self.plan])
        self.flop = 2 * json.load(open(self.plan))["predicted"]["multiply_adds"] * ranks
        self.samples, self.exchanges, self.resident = [], [], 0

    def turn(self, steps=STEPS, data=None, init=None):
        metrics = os.path.join(self.folder, "metrics.jsonl")
        command = ["meshtf-run", self.plan, f"--steps={steps + 1}", f"--metrics={metrics}", *self.options]
        command += [f"--data={data}"] if data else []
        command += [f"--init={init}"] if init else []
        if self.ranks > 1:
            command = ["mpirun", "--bind-to", "core", "-n", str(self.ranks)] + command
        _, resident = run(command)
        lines = [json.loads(line) for line in open(metrics)]
        self.samples += [(line["seconds"], line["processor_seconds"]) for line in lines[1:]]
        self.exchanges += [line["communication_seconds"] for line in lines[1:]]
        self.resident = max(self.resident, resident)
        return [line["loss"] for line in lines]


class Peer:
    def __init__(self, family, settings, ranks=1, threads=1):
        self.command = ["/usr/bin/python3", os.path.join(HERE, "torch_peer.py"), family]
        self.command += [f for f in flags(settings) if not f.startswith("--d-kv")]
        self.command += [f"--ranks={ranks}", f"--threads={threads}"]
        self.threads, self.samples, self.resident, self.product = threads, [], 0, 0

    def turn(self, *more, steps=STEPS, warmup=1):
        command = self.command + [f"--steps={steps}", f"--warmup={warmup}", *more]
        text, _ = run(command, env=environment(self.threads))
        *lines, last = text.splitlines()
        rows = [tuple(map(float, line.split())) for line in lines]
        self.samples += [(wall, processor) for wall, processor, _ in rows]
        resident, _, rate, _ = last.split()
        self.resident, self.product = max(self.resident, float(resident)), max(self.product, float(rate) * 1e9)
        return [loss for _, _, loss in rows]


def loss_difference(folder, family, settings, text):
    """Of six steps from equal weights on one window."""
    if family != "gpt":
        return None
    weights, window = os.path.join(folder, "weights"), os.path.join(folder, "window")
    with open(text, "rb") as file, open(window, "wb") as out:
        out.write(file.read(settings["length"] + 1))
    theirs = Peer(family, settings).turn(f"--weights={weights}", f"--text={window}", steps=6, warmup=0)
    ours = Ours(folder, family, settings).turn(steps=5, data=window, init=weights)
    return max(abs(a - b) for a, b in zip(ours, theirs))


def items(settings):
    return settings["batch"] * settings.get("length", 1)


def row(name, ours, peers, settings):
    mine, good = steady(ours.samples)
    best = min(peers, key=lambda peer: steady(peer.samples)[0])
    theirs, peer_good = steady(best.samples)
    share = ours.flop / mine / (best.product * ours.ranks)
    print(f"{name:22} {items(ours.settings) / mine:9.0f} {items(settings) / theirs:9.0f} {theirs / mine * items(ours.settings) / items(settings):7.2f}"
          f" {100 * share:6.0f} % {ours.resident * ours.ranks:7.0f} {best.resident:7.0f}   {good}/{len(ours.samples)} {peer_good}/{len(best.samples)}",
          flush=True)


def scaling_row(name, ours, alone):
    step, good = steady(ours.samples)
    one, one_good = steady(alone.samples)
    ratio = (items(ours.settings) / step) / (items(alone.settings) / one)
    print(f"{name:22} {items(ours.settings) / step:9.0f} {ratio:9.2f} x one rank; not overlapped"
          f" {1e3 * statistics.median(ours.exchanges):.1f} of {1e3 * step:.1f} ms   {good}/{len(ours.samples)}"
          f" {one_good}/{len(alone.samples)}", flush=True)


def compare(name, text, machine):
    family, settings = MODELS[name]
    data = text if family == "gpt" else None
    with tempfile.TemporaryDirectory() as folder:
        variants = {}
        for label, options in VARIANTS.items():
            place = os.path.join(folder, label.replace(" ", "-"))
            os.mkdir(place)
            options = {key: machine if key == "machine" else value for key, value in options.items()}
            variants[label] = Ours(place, family, settings, asked=PLANS.get(name, ()), **options)
        alone, both = [Peer(family, settings)], [Peer(family, settings, threads=2), Peer(family, settings, ranks=2)]
        for _ in range(TURNS):
            for run_one in [*variants.values()]:
                run_one.turn(data=data)
            for peer in alone + both:
                peer.turn()
        row(name, variants["f32"], alone, settings)
        row(name + " bf16", variants["bf16"], alone, settings)
        row(name + " 2 ranks", variants["2 ranks"], both, settings)
        for label in ("2B", "2B at once", "2B search"):
            scaling_row(f"{name} {label}", variants[label], variants["f32"])
        difference = loss_difference(folder, family, settings, text)
        if difference is not None:
            print(f"{'':22} losses from equal weights differ by at most {difference:.1e} over 6 steps", flush=True)


def main():
    print(f"{'model':22} {'ours/s':>9} {'torch/s':>9} {'ratio':>7} {'of sgemm':>8} {'MiB':>7} {'torch':>7}   samples kept")
    with tempfile.TemporaryDirectory() as folder:
        machine = os.path.join(folder, "here.json")
        run(["mpirun", "--bind-to", "core", "-n", "2", "meshtf-run", "--calibrate", "-o", machine])
        for name in MODELS:
            if not ONLY or name in ONLY.split():
                compare(name, sys.argv[1], machine)


main()
