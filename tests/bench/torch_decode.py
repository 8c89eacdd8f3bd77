#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text from GPT-2 small (random weights), token by token with a cache: `meshtf-run --serve` beside eager
PyTorch, as a careful user would write it there. One core each, in turns; processor seconds, the least
of the rounds, so that what else runs on the machine counts little.

    torch_decode.py ROUNDS FOLDER       prints a line a batch, phase and type of weights
"""
import json
import math
import os
import subprocess
import sys
import time
import urllib.request

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
import torch
import torch.nn.functional as F

D, HEADS, LAYERS, FF, VOCAB, LENGTH = 768, 12, 12, 3072, 50257, 256
PROMPT, TOKENS = 128, 32


class Gpt:
    """Weights as GPT-2 has them: q, k and v in one product, the head tied to the embedding."""

    def __init__(self, dtype):
        def weight(*shape):
            return (torch.randn(*shape) * 0.02).to(dtype)

        self.embedding, self.positions = weight(VOCAB, D), weight(LENGTH, D)
        self.layers = [{"qkv": weight(3 * D, D), "qkv_b": weight(3 * D), "o": weight(D, D), "o_b": weight(D),
                        "w1": weight(FF, D), "b1": weight(FF), "w2": weight(D, FF), "b2": weight(D),
                        "g1": weight(D), "h1": weight(D), "g2": weight(D), "h2": weight(D)} for _ in range(LAYERS)]
        self.g, self.h = weight(D), weight(D)

    def scores(self, tokens, cache, filled):
        """Scores behind the last token; keys and values of the new ones go to the cache."""
        batch, n = tokens.shape
        x = F.embedding(tokens, self.embedding) + self.positions[filled:filled + n]
        future = None if n == 1 else torch.ones(n, filled + n).triu(filled + 1).bool()
        for layer, (keys, values) in zip(self.layers, cache):
            qkv = F.linear(F.layer_norm(x, (D,), layer["g1"], layer["h1"]), layer["qkv"], layer["qkv_b"])
            q, k, v = (t.view(batch, n, HEADS, -1).transpose(1, 2) for t in qkv.split(D, dim=2))
            keys[:, :, filled:filled + n], values[:, :, filled:filled + n] = k, v
            weights = q @ keys[:, :, :filled + n].transpose(-2, -1) * (1 / math.sqrt(D // HEADS))
            if future is not None:
                weights = weights.masked_fill(future, float("-inf"))
            context = F.softmax(weights, dim=-1) @ values[:, :, :filled + n]
            x = x + F.linear(context.transpose(1, 2).reshape(batch, n, D), layer["o"], layer["o_b"])
            hidden = F.gelu(F.linear(F.layer_norm(x, (D,), layer["g2"], layer["h2"]), layer["w1"], layer["b1"]),
                            approximate="tanh")
            x = x + F.linear(hidden, layer["w2"], layer["b2"])
        return F.linear(F.layer_norm(x[:, -1], (D,), self.g, self.h), self.embedding)


def torch_seconds(model, batch):
    """Processor seconds of a prompt, and of a token behind it."""
    dtype = model.embedding.dtype
    with torch.no_grad():
        cache = [[torch.zeros(batch, HEADS, LENGTH, D // HEADS, dtype=dtype) for _ in range(2)] for _ in range(LAYERS)]
        tokens = torch.randint(0, VOCAB, (batch, PROMPT))
        begin = time.process_time()
        tokens = model.scores(tokens, cache, 0).argmax(-1, keepdim=True)
        middle = time.process_time()
        for i in range(TOKENS):
            tokens = model.scores(tokens, cache, PROMPT + i).argmax(-1, keepdim=True)
        return middle - begin, (time.process_time() - middle) / TOKENS


class Server:
    def __init__(self, plan, slots):
        self.process = subprocess.Popen(["meshtf-run", plan, "--serve", "0", "--slots", str(slots)],
                                        stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if "http://" in line:
                self.url = line.split("http://")[1].split(":")[1].split("/")[0]
                return
        sys.exit("meshtf-run did not serve")

    def processor_seconds(self):
        with open(f"/proc/{self.process.pid}/schedstat") as file:
            main = int(file.read().split()[0]) / 1e9
        return main

    def ask(self, batch, tokens):
        prompt = [[(7 * i + 31 * b) % VOCAB for i in range(PROMPT)] for b in range(batch)]
        body = json.dumps({"prompt": prompt, "max_tokens": tokens, "temperature": 0}).encode()
        begin = self.processor_seconds()
        with urllib.request.urlopen(f"http://127.0.0.1:{self.url}/v1/completions", body, timeout=600) as answer:
            assert json.load(answer)["usage"]["completion_tokens"] == batch * tokens
        return self.processor_seconds() - begin

    def seconds(self, batch):
        prompt = self.ask(batch, 1)
        return prompt, (self.ask(batch, 1 + TOKENS) - prompt) / TOKENS


def plan_of(folder, precision, batch):
    graph, plan = os.path.join(folder, "g.json"), os.path.join(folder, f"{precision}-{batch}.json")
    subprocess.run(["meshtf-plan", "model", "gpt", "--batch", str(batch), "--length", str(LENGTH), "--vocab", str(VOCAB),
                    "-o", graph], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["meshtf-plan", "search", graph, "--infer", "decode", "--batch", str(batch), "--context", str(PROMPT),
                    "--generate", str(LENGTH - PROMPT), "--devices", "1", "--machine", "cpu-host", "--precision",
                    precision, "-o", plan], check=True, stdout=subprocess.DEVNULL)
    return plan


def main():
    rounds, folder = int(sys.argv[1]), sys.argv[2]
    torch.set_num_threads(1)
    print("batch  weights  phase     ours ms  torch ms   ratio")
    for precision, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        model = Gpt(dtype)
        for batch in (1, 8):
            server = Server(plan_of(folder, precision, batch), batch)
            pairs = [(server.seconds(batch), torch_seconds(model, batch)) for _ in range(rounds)]
            server.process.terminate()
            server.process.wait()
            for phase, name in enumerate(("prefill", "decode")):
                ours, theirs = (1e3 * min(pair[who][phase] for pair in pairs) for who in (0, 1))
                print(f"{batch:5}  {precision:7}  {name:7}  {ours:8.2f}  {theirs:8.2f}  {theirs / ours:6.2f}", flush=True)


main()
