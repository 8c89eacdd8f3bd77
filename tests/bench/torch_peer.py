#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The models of `meshtf-plan model gpt` and `mlp --preset mnist` in PyTorch (eager, float32, AdamW), as
a careful user would write them there: q, k and v in one product, tied softmax weights.

Prints a line a measured step: wall seconds, processor seconds of rank 0, loss; and last the peak
resident MiB of all processes and the rate of the library's own product of 1024 x 768 x 3072. With
--weights FILE the initial weights are also written as safetensors under meshtf-plan's names, for
`meshtf-run --init`.
"""
import argparse
import math
import os
import resource
import time

arguments = argparse.ArgumentParser(description=__doc__)
arguments.add_argument("model", choices=["gpt", "mnist"])
arguments.add_argument("--batch", type=int, default=4)
arguments.add_argument("--length", type=int, default=256)
arguments.add_argument("--d-model", type=int, default=768)
arguments.add_argument("--layers", type=int, default=12)
arguments.add_argument("--heads", type=int, default=12)
arguments.add_argument("--d-ff", type=int, default=3072)
arguments.add_argument("--vocab", type=int, default=50257)
arguments.add_argument("--hidden", type=int, default=2048)
arguments.add_argument("--steps", type=int, default=5)
arguments.add_argument("--warmup", type=int, default=1)
arguments.add_argument("--rate", type=float, default=3e-4)
arguments.add_argument("--threads", type=int, default=1)
arguments.add_argument("--ranks", type=int, default=1, help="processes of DistributedDataParallel over gloo")
arguments.add_argument("--text", help="bytes: every example of every batch is the window at its beginning")
arguments.add_argument("--weights", help="write the initial weights there")
a = arguments.parse_args()
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(a.threads)

import torch  # after the threads are set
import torch.nn.functional as F

from weights_file import write_weights


class Gpt(torch.nn.Module):
    def __init__(self):
        super().__init__()
        d, spread = a.d_model, 0.02
        self.embedding = self.weight(spread, a.vocab, d)
        self.positions = self.weight(spread, a.length, d)
        self.layers = torch.nn.ModuleList(torch.nn.Module() for _ in range(a.layers))
        for layer in self.layers:
            self.norm(layer, "attention_norm")
            layer.wqkv = self.weight(spread, 3 * d, d)
            layer.qkv_bias = torch.nn.Parameter(torch.zeros(3 * d))
            layer.wo = self.weight(spread / math.sqrt(2 * a.layers), d, d)
            layer.wo_bias = torch.nn.Parameter(torch.zeros(d))
            self.norm(layer, "ffn_norm")
            layer.w1 = self.weight(spread, a.d_ff, d)
            layer.w1_bias = torch.nn.Parameter(torch.zeros(a.d_ff))
            layer.w2 = self.weight(spread / math.sqrt(2 * a.layers), d, a.d_ff)
            layer.w2_bias = torch.nn.Parameter(torch.zeros(d))
        self.norm(self, "head_norm")
        self.future = torch.ones(a.length, a.length).triu(1).bool()

    @staticmethod
    def weight(spread, *shape):
        return torch.nn.Parameter(torch.randn(*shape) * spread)

    @staticmethod
    def norm(module, name):
        setattr(module, name + "_scale", torch.nn.Parameter(torch.ones(a.d_model)))
        setattr(module, name + "_bias", torch.nn.Parameter(torch.zeros(a.d_model)))

    @staticmethod
    def normal(x, module, name):
        return F.layer_norm(x, (a.d_model,), getattr(module, name + "_scale"), getattr(module, name + "_bias"), 1e-6)

    def attention(self, x, layer):
        batch, length, d = x.shape
        qkv = F.linear(self.normal(x, layer, "attention_norm"), layer.wqkv, layer.qkv_bias)
        q, k, v = (t.view(batch, length, a.heads, d // a.heads).transpose(1, 2) for t in qkv.split(d, dim=2))
        scores = (q @ k.transpose(-2, -1)) * (1 / math.sqrt(d // a.heads))
        context = F.softmax(scores.masked_fill(self.future, float("-inf")), dim=-1) @ v
        return F.linear(context.transpose(1, 2).reshape(batch, length, d), layer.wo, layer.wo_bias)

    def forward(self, tokens, targets):
        x = F.embedding(tokens, self.embedding) + self.positions
        for layer in self.layers:
            x = x + self.attention(x, layer)
            hidden = F.gelu(F.linear(self.normal(x, layer, "ffn_norm"), layer.w1, layer.w1_bias), approximate="tanh")
            x = x + F.linear(hidden, layer.w2, layer.w2_bias)
        logits = F.linear(self.normal(x, self, "head_norm"), self.embedding)
        return F.cross_entropy(logits.view(-1, a.vocab), targets.reshape(-1))

    def named(self):
        """The weights under meshtf-plan's names and in its order of dimensions."""
        heads, width = a.heads, a.d_model // a.heads
        yield "embedding", self.embedding
        yield "positions", self.positions
        for i, layer in enumerate(self.layers):
            yield f"layer/{i}/attention/norm_scale", layer.attention_norm_scale
            yield f"layer/{i}/attention/norm_bias", layer.attention_norm_bias
            for name, w, bias in zip("qkv", layer.wqkv.split(a.d_model), layer.qkv_bias.split(a.d_model)):
                yield f"layer/{i}/attention/w{name}", w.t().reshape(a.d_model, heads, width)
                yield f"layer/{i}/attention/{name}_bias", bias.view(heads, width)
            yield f"layer/{i}/attention/wo", layer.wo.t().reshape(heads, width, a.d_model)
            yield f"layer/{i}/attention/out_bias", layer.wo_bias
            yield f"layer/{i}/ffn/norm_scale", layer.ffn_norm_scale
            yield f"layer/{i}/ffn/norm_bias", layer.ffn_norm_bias
            yield f"layer/{i}/ffn/w1", layer.w1.t()
            yield f"layer/{i}/ffn/hidden_bias", layer.w1_bias
            yield f"layer/{i}/ffn/w2", layer.w2.t()
            yield f"layer/{i}/ffn/out_bias", layer.w2_bias
        yield "head/norm_scale", self.head_norm_scale
        yield "head/norm_bias", self.head_norm_bias


class Mnist(torch.nn.Module):
    def __init__(self):
        super().__init__()
        sizes = [784, a.hidden, a.hidden, 10]
        self.layers = torch.nn.ModuleList(torch.nn.Linear(m, n) for m, n in zip(sizes, sizes[1:]))

    def forward(self, x, labels):
        for layer in self.layers[:-1]:
            x = F.relu(layer(x))
        return F.cross_entropy(self.layers[-1](x), labels)

    def named(self):
        for i, layer in enumerate(self.layers):
            yield f"layer/{i}/w", layer.weight.t()
            yield f"layer/{i}/bias", layer.bias


def batch(rank, generator):
    """This rank's share of the step's examples."""
    share = slice(rank * a.batch // a.ranks, (rank + 1) * a.batch // a.ranks)
    if a.model == "mnist":
        x, labels = torch.rand(a.batch, 784, generator=generator), torch.randint(0, 10, (a.batch,), generator=generator)
        return x[share], labels[share]
    if a.text:
        window = torch.tensor(list(open(a.text, "rb").read(a.length + 1)))
        windows = window.expand(a.batch, -1)
    else:
        windows = torch.randint(0, a.vocab, (a.batch, a.length + 1), generator=generator)
    return windows[share, :-1].contiguous(), windows[share, 1:].contiguous()


def product_rate():
    """flop/s of one large product, the best of several."""
    x, y = torch.rand(1024, 768), torch.rand(768, 3072)
    best = math.inf
    for _ in range(10):
        start = time.process_time()
        x @ y
        best = min(best, time.process_time() - start)
    return 2 * 1024 * 768 * 3072 / best


def run(rank, results):
    torch.set_num_threads(a.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(2)
    model = Gpt() if a.model == "gpt" else Mnist()
    if a.weights and rank == 0:
        write_weights(a.weights, {name: weight.detach().numpy() for name, weight in model.named()})
    if a.ranks > 1:
        import torch.distributed as distributed
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29541")
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        distributed.init_process_group("gloo", rank=rank, world_size=a.ranks)
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=a.rate, weight_decay=0.01)
    for step in range(a.warmup + a.steps):
        inputs = batch(rank, generator)
        if a.ranks > 1:
            distributed.barrier()
        wall, processor = time.perf_counter(), time.process_time()
        loss = model(*inputs)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        value = loss.item()
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        if rank == 0 and step >= a.warmup:
            print(f"{wall:.6f} {processor:.6f} {value:.6f}", flush=True)
    results.put(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


if __name__ == "__main__":
    import torch.multiprocessing as processes
    results = processes.get_context("fork").Queue()
    if a.ranks == 1:
        run(0, results)
    else:
        children = [processes.get_context("fork").Process(target=run, args=(r, results)) for r in range(a.ranks)]
        for child in children:
            child.start()
        for child in children:
            child.join()
    print(f"{sum(results.get() for _ in range(a.ranks)):.0f} MiB, {product_rate() / 1e9:.1f} GFLOP/s")
