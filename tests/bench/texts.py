#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""meshtf-run beside PyTorch on networks for texts, one core, turn by turn. Run by bench_texts.sh.

    seconds     processor seconds of a step, the median: both run on one thread, and other work on the
                machine does not count
    MiB         resident at most; the arena of ours is predicted to the byte

Weights and texts are drawn by each side for itself: that both compute the same is shown by bench_operations, which
trains the families on equal weights. PyTorch's sides are its own layers (nn.LSTM, nn.Transformer) and, for experts,
Mixtral as Hugging Face writes it: one expert after the other over the rows that chose it. With --peer MODEL this is
PyTorch's side.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

STEPS = int(os.environ.get("BENCH_STEPS", "5"))
TURNS = int(os.environ.get("BENCH_TURNS", "3"))
ONLY = os.environ.get("BENCH_MODELS", "")
ALONE = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
MIXTRAL = {"model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "hidden_size": 512, "intermediate_size": 1024,
           "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 4, "num_local_experts": 8,
           "num_experts_per_tok": 2, "vocab_size": 4096, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
           "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": False, "sliding_window": None}

# What writes the graph, behind `meshtf-plan`; batch, length and vocabulary.
MODELS = {
    "lstm-2x512": (["model", "lstm-lm", "--preset=2x512", "--d-model=512", "--vocab=8192", "--length=64", "--batch=16"], 16, 64, 8192),
    "moe-8": (["import", "config.json", "--batch=4", "--length=128"], 4, 128, 4096),
    "encoder-decoder": (["model", "transformer", "--preset=base", "--vocab=8192", "--length=64", "--batch=4"], 4, 64, 8192),
}


# ---- PyTorch's side --------------------------------------------------------------------------------

def lstm(torch, vocab):
    nn = torch.nn

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.layers = nn.Embedding(vocab, 512), nn.LSTM(512, 512, 2, batch_first=True)
            self.scores = nn.Linear(512, vocab)

        def forward(self, x):
            return self.scores(self.layers(self.table(x))[0])

    return Recurrent()


def encoder_decoder(torch, vocab):
    nn = torch.nn

    class Pairs(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(vocab, 512)
            self.layers = nn.Transformer(512, 8, 6, 6, 2048, 0.0, batch_first=True)

        def forward(self, x):
            mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
            return self.layers(self.table(x.flip(1)), self.table(x), tgt_mask=mask) @ self.table.weight.T

    return Pairs()


def experts(torch, vocab):
    nn, F = torch.nn, torch.nn.functional
    width, heads, memories, features = 512, 8, 4, 64

    def linear(read, written):
        return nn.Linear(read, written, bias=False)

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(width))

        def forward(self, x):
            return self.scale * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k = linear(width, heads * features), linear(width, memories * features)
            self.v, self.out = linear(width, memories * features), linear(heads * features, width)

        def forward(self, x, cosine, sine):
            def split(y, turned):
                y = y.view(x.shape[0], x.shape[1], -1, features).transpose(1, 2)
                a, b = y.chunk(2, -1)
                return torch.cat([a * cosine - b * sine, b * cosine + a * sine], -1) if turned else y
            q = split(self.q(x), True)
            k, v = (y.repeat_interleave(heads // memories, 1) for y in (split(self.k(x), True), split(self.v(x), False)))
            hidden = torch.full((x.shape[1], x.shape[1]), float("-inf")).triu(1)
            shares = F.softmax(q @ k.transpose(-1, -2) / features ** 0.5 + hidden, -1)
            return self.out((shares @ v).transpose(1, 2).flatten(2))

    class Experts(nn.Module):
        def __init__(self, n=8, hidden=1024, chosen=2):
            super().__init__()
            self.chosen, self.router = chosen, linear(width, n)
            self.gates, self.ups = (nn.ModuleList(linear(width, hidden) for _ in range(n)) for _ in range(2))
            self.downs = nn.ModuleList(linear(hidden, width) for _ in range(n))

        def forward(self, x):
            rows = x.flatten(0, 1)
            shares, experts = F.softmax(self.router(rows), -1).topk(self.chosen, -1)
            shares, out = shares / shares.sum(-1, keepdim=True), torch.zeros_like(rows)
            for e, (gate, up, down) in enumerate(zip(self.gates, self.ups, self.downs)):
                row, choice = torch.where(experts == e)
                y = down(F.silu(gate(rows[row])) * up(rows[row]))
                out = out.index_add(0, row, y * shares[row, choice, None])
            return out.view(x.shape)

    class Mixtral(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.scores = nn.Embedding(vocab, width), linear(width, vocab)
            self.layers = nn.ModuleList(nn.ModuleList([Norm(), Attention(), Norm(), Experts()]) for _ in range(2))
            self.norm = Norm()

        def forward(self, x):
            angle = torch.arange(x.shape[1])[:, None] * 10000 ** (-torch.arange(0, features // 2) * 2 / features)
            y, turned = self.table(x), (angle.cos(), angle.sin())
            for before, attention, between, chosen in self.layers:
                y = y + attention(before(y), *turned)
                y = y + chosen(between(y))
            return self.scores(self.norm(y))

    return Mixtral()


def peer(name):
    import resource
    import time
    import torch
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)  # off, products of tiny gradients take three times as long on Intel
    torch.manual_seed(1)
    _, batch, length, vocab = MODELS[name]
    model = {"lstm-2x512": lstm, "moe-8": experts, "encoder-decoder": encoder_decoder}[name](torch, vocab)
    tokens = torch.randint(0, 256, (batch, length + 1))
    kind = torch.optim.AdamW if name == "moe-8" else torch.optim.Adam
    optimizer = kind(model.parameters(), lr=1e-4, foreach=False)
    for _ in range(STEPS + 1):
        start = time.process_time()
        optimizer.zero_grad(set_to_none=True)
        scores = model(tokens[:, :-1])
        torch.nn.functional.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten()).backward()
        optimizer.step()
        print(time.process_time() - start)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


# ---- The comparison --------------------------------------------------------------------------------

def run(folder, command):
    """Standard output and peak resident MiB."""
    with tempfile.TemporaryFile("w+") as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, env=ALONE, cwd=folder)
        _, status, usage = os.wait4(child.pid, 0)
        if status != 0:
            sys.exit(f"{' '.join(command)}: failed")
        out.seek(0)
        return out.read(), usage.ru_maxrss / 1024


def write_texts(folder, length):
    """Pairs of texts, and the same as one; words are drawn."""
    letters = random.Random(3)
    line = lambda: "".join(letters.choice("etaoin shrdlu") for _ in range(length - 4))
    pairs = [(line(), line()) for _ in range(400)]
    with open(os.path.join(folder, "pairs.tsv"), "w") as file:
        file.writelines(f"{a}\t{b}\n" for a, b in pairs)
    with open(os.path.join(folder, "text.txt"), "w") as file:
        file.writelines(f"{a} {b}\n" for a, b in pairs)


def turn_ours(folder, name):
    data = "pairs.tsv" if name == "encoder-decoder" else "text.txt"
    _, resident = run(folder, ["meshtf-run", "plan.json", f"--steps={STEPS + 1}", "--metrics=metrics.jsonl", f"--data={data}"])
    lines = [json.loads(line) for line in open(os.path.join(folder, "metrics.jsonl"))]
    return [line["processor_seconds"] for line in lines[1:]], resident


def turn_theirs(folder, name):
    text, _ = run(folder, ["/usr/bin/python3", os.path.abspath(__file__), f"--peer={name}"])
    *seconds, resident = map(float, text.splitlines())
    return seconds[1:], resident


def compare(name):
    settings, _, length, _ = MODELS[name]
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump(MIXTRAL, file)
        write_texts(folder, length)
        run(folder, ["meshtf-plan", *settings, "-o", "graph.json"])
        run(folder, ["meshtf-plan", "search", "graph.json", "--machine=cpu-host", "--devices=1", "--recompute=none", "-o", "plan.json"])
        turns = [(turn_ours(folder, name), turn_theirs(folder, name)) for _ in range(TURNS)]
    mine, theirs = (statistics.median([s for turn in turns for s in turn[side][0]]) for side in (0, 1))
    ours, other = max(turn[0][1] for turn in turns), min(turn[1][1] for turn in turns)
    print(f"{name:16} {mine:9.2f} {theirs:9.2f} {theirs / mine:7.2f} {ours:9.0f} {other:9.0f} {ours / other:7.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", choices=MODELS)
    a = parser.parse_args()
    if a.peer:
        return peer(a.peer)
    print(f"{'model':16} {'ours s':>9} {'torch s':>9} {'ratio':>7} {'MiB':>9} {'torch':>9} {'ratio':>7}")
    for name in MODELS:
        if not ONLY or name in ONLY.split():
            compare(name)


main()
