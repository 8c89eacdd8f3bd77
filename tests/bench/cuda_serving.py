#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tokens of Llama 3 8B cost one CUDA device by PyTorch (2.9 or later): attention of one new token by each of PyTorch's kernels,
whole tokens and prompts; what the host takes a kernel; and what kernels lose beside others that copy:

    python3 tests/bench/cuda_serving.py attention        # kernel rows positions heads keys features seconds
    python3 tests/bench/cuda_serving.py decode default   # or flash, whose kernel divides one head's positions among processors
    python3 tests/bench/cuda_serving.py prefill
    python3 tests/bench/cuda_serving.py host             # what is run, how; kernels; seconds
    python3 tests/bench/cuda_serving.py beside           # what, beside what; seconds alone and beside; what the other one lost

Medians of events. Of the 32 layers eight have weights and caches of their own, which is more than any cache of the device holds."""
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from cuda_timing import captured, seconds_of

COUNT, WIDTH, HEADS, SHARED, FEATURES, INNER, VOCAB, OWN = 32, 4096, 32, 8, 128, 14336, 128256, 8
DECODES = ((1, 1024), (1, 8192), (1, 32768), (8, 1024), (8, 8192), (8, 32768), (64, 1024), (64, 4096))
PROMPTS = ((1, 512), (1, 2048), (1, 16384), (16, 512))
half = torch.bfloat16


def ready():
    """Where several measurements are prepared at once, each is told when it has the device for itself."""


def say(*values):
    print(*(f"{x:.6g}" if isinstance(x, float) else x for x in values), flush=True)


def drawn(*shape):
    return torch.randn(*shape, dtype=half) * shape[-1] ** -0.5


# ---- Attention of one token ------------------------------------------------------------------------


def default(q, k, v):
    """Heads that share keys are rows of one."""
    rows = q.shape[0]
    return F.scaled_dot_product_attention(q.view(rows, SHARED, HEADS // SHARED, FEATURES), k, v).reshape(rows, HEADS, 1, FEATURES)


def flash(q, k, v):
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)


def attention():
    from torch.nn.attention.flex_attention import flex_attention
    compiled = torch.compile(flex_attention, dynamic=False)
    kernels = {"default": default, "flash": flash, "flex": lambda q, k, v: compiled(q, k, v, enable_gqa=True)}
    for name, backend in (("rows-flash", SDPBackend.FLASH_ATTENTION), ("rows-cudnn", SDPBackend.CUDNN_ATTENTION),
                          ("rows-efficient", SDPBackend.EFFICIENT_ATTENTION), ("rows-math", SDPBackend.MATH)):
        def chosen(q, k, v, backend=backend):
            with sdpa_kernel(backend):
                return default(q, k, v)
        kernels[name] = chosen
    calls = []
    for rows, length in DECODES:
        copies = max(1, int(2e8 / (rows * length * SHARED * FEATURES * 4)))
        caches = [(drawn(rows, SHARED, length, FEATURES), drawn(rows, SHARED, length, FEATURES)) for _ in range(copies)]
        q = drawn(rows, HEADS, 1, FEATURES)
        for name, kernel in kernels.items():
            try:
                call = captured(lambda kernel=kernel: [kernel(q, k, v) for k, v in caches])
                calls.append((name, rows, length, copies, call, q, caches))
            except Exception as error:
                say("#", name, rows, length, type(error).__name__, str(error).splitlines()[0][:150])
    ready()
    for name, rows, length, copies, call, *_ in calls:
        say("attention", name, rows, length, HEADS, SHARED, FEATURES, seconds_of(call) / copies)


# ---- Tokens and prompts ----------------------------------------------------------------------------


def network(kernel):
    """(What a layer does, its weights, what stands before and behind all layers.)"""
    weights = [(drawn((HEADS + 2 * SHARED) * FEATURES, WIDTH), drawn(WIDTH, HEADS * FEATURES), drawn(2 * INNER, WIDTH), drawn(WIDTH, INNER))
               for _ in range(OWN)]
    embedding, head, one = drawn(VOCAB, WIDTH), drawn(VOCAB, WIDTH), torch.ones(WIDTH, dtype=half)
    angles = torch.outer(torch.arange(40000).float(), 500000.0 ** -(torch.arange(0, FEATURES, 2).float() / FEATURES))
    cos, sin = angles.cos(), angles.sin()

    def turn(x, at):
        (a, b), c, s = x.float().chunk(2, -1), cos[at][:, None], sin[at][:, None]
        return torch.cat([a * c - b * s, b * c + a * s], -1).to(half)

    @torch.compile(dynamic=False)
    def layer(x, weights, cache, at):
        rows, length = x.shape[:2]
        q, k, v = F.linear(F.rms_norm(x, (WIDTH,), one), weights[0]).split([n * FEATURES for n in (HEADS, SHARED, SHARED)], -1)
        q = turn(q.view(rows, length, HEADS, FEATURES), at).transpose(1, 2)
        k = turn(k.view(rows, length, SHARED, FEATURES), at).transpose(1, 2)
        v = v.view(rows, length, SHARED, FEATURES).transpose(1, 2)
        if cache is None:
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        else:
            cache[0].index_copy_(2, at, k)
            cache[1].index_copy_(2, at, v)
            a = kernel(q, *cache)
        x = x + F.linear(a.transpose(1, 2).reshape(rows, length, HEADS * FEATURES), weights[1])
        gate, up = F.linear(F.rms_norm(x, (WIDTH,), one), weights[2]).chunk(2, -1)
        return x + F.linear(F.silu(gate) * up, weights[3])

    def run(text, caches, at):
        x = F.embedding(text, embedding)
        for i in range(COUNT):
            x = layer(x, weights[i % OWN], caches[i % OWN] if caches else None, at)
        return F.linear(F.rms_norm(x[:, -1:], (WIDTH,), one), head).argmax(-1)

    return run


def decode(name):
    run, calls = network({"default": default, "flash": flash}[name]), []
    for rows, length in DECODES:
        caches = [(drawn(rows, SHARED, length, FEATURES), drawn(rows, SHARED, length, FEATURES)) for _ in range(OWN)]
        token, at = torch.randint(0, VOCAB, (rows, 1)), torch.tensor([length - 1])
        call = captured(lambda: run(token, caches, at))
        calls.append((rows, length, call, token, at, caches))
    ready()
    for rows, length, call, *_ in calls:
        say("decode", name, rows, length, seconds_of(call))


def prefill():
    run, calls = network(None), []
    for rows, length in PROMPTS:
        text, at = torch.randint(0, VOCAB, (rows, length)), torch.arange(length)
        run(text, None, at)
        calls.append((rows, length, lambda text=text, at=at: run(text, None, at)))
    torch.cuda.synchronize()
    ready()
    for rows, length, call in calls:
        say("prefill", "default", rows, length, seconds_of(call, 5))


# ---- The host --------------------------------------------------------------------------------------


def kernels_of(call):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        call()
        torch.cuda.synchronize()
    return sum(event.count for event in profile.key_averages() if event.device_type == torch.autograd.DeviceType.CUDA)


def host_seconds(call, times=15):
    taken = []
    for _ in range(times):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def host():
    """Twelve layers of 256 for 64 tokens, too small for the device to be waited for."""
    class Layer(torch.nn.Module):
        def __init__(self, w=256):
            super().__init__()
            self.a, self.b, self.qkv, self.out = torch.nn.LayerNorm(w), torch.nn.LayerNorm(w), torch.nn.Linear(w, 3 * w), torch.nn.Linear(w, w)
            self.up, self.down = torch.nn.Linear(w, 4 * w), torch.nn.Linear(4 * w, w)

        def forward(self, x):
            q, k, v = self.qkv(self.a(x)).view(1, 64, 3, 4, 64).permute(2, 0, 3, 1, 4)
            x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(1, 64, 256))
            return x + self.down(F.gelu(self.up(self.b(x))))

    layers = torch.nn.Sequential(*(Layer() for _ in range(12)))
    optimizer = torch.optim.AdamW(layers.parameters(), lr=1e-4, fused=True)
    x = torch.randn(1, 64, 256)

    def forward():
        with torch.no_grad(), torch.autocast("cuda", half):
            return layers(x)

    def step():
        with torch.autocast("cuda", half):
            layers(x).square().mean().backward()

    def update():
        optimizer.step()

    def measure(how, *calls):
        for call in calls:
            for _ in range(4):
                call()
        rows.extend((how, call) for call in calls)

    rows = []
    measure("eager", forward, step, update)
    eager = [(how, call.__name__, kernels_of(call)) for how, call in rows]
    graph = captured(forward)
    ready()
    for (how, name, kernels), (_, call) in zip(eager, rows):
        say("host", name, how, kernels, host_seconds(call))
    say("host", "forward", "graph", kernels_of(graph), host_seconds(graph))
    for layer in layers:
        layer.compile(dynamic=False)
    for call in (forward, step):
        for _ in range(4):
            call()
        say("host", call.__name__, "compiled", kernels_of(call), host_seconds(call))
    graph = captured(forward)
    say("host", "forward", "compiled-graph", kernels_of(graph), host_seconds(graph))


# ---- Beside others ---------------------------------------------------------------------------------


def beside():
    import triton
    import triton.language as tl

    @triton.jit
    def copy(source, target, n, blocks, block: tl.constexpr):
        for i in range(tl.program_id(0), n // block, blocks):
            at = i * block + tl.arange(0, block)
            tl.store(target + at, tl.load(source + at))

    source, target = (torch.randn(1 << 28, dtype=half) for _ in range(2))
    a, b, c = drawn(8192, 8192), drawn(8192, 8192), torch.empty(8192, 8192, dtype=half)
    q = drawn(2, 32, 4096, 128)
    x, y = (torch.randn(1 << 27, dtype=half) for _ in range(2))
    pinned = torch.empty(1 << 28, dtype=half, device="cpu", pin_memory=True)
    kernels = {"product": lambda: torch.mm(a, b, out=c), "attention": lambda: F.scaled_dot_product_attention(q, q, q, is_causal=True),
               "pass": lambda: torch.add(x, x, out=y)}
    others = {f"copy of {n} processors": lambda n=n: copy[(n,)](source, target, source.numel(), n, 4096) for n in (4, 8, 16, 32, 132)}
    others["copy_"] = lambda: target.copy_(source)
    others["to the host"] = lambda: pinned.copy_(source, non_blocking=True)
    for call in (*kernels.values(), *others.values()):
        call()
    torch.cuda.synchronize()
    ready()
    one, two = torch.cuda.Stream(), torch.cuda.Stream()

    def on(stream, call, times):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with torch.cuda.stream(stream):
            start.record()
            for _ in range(times):
                call()
            end.record()
        return start, end

    def taken(events, times):
        return events[0].elapsed_time(events[1]) * 1e-3 / times

    alone = {name: seconds_of(call, 7) for name, call in {**kernels, **others}.items()}
    for name, other in others.items():
        say("alone", name.replace(" ", "-"), alone[name], 4.0 * source.numel() / alone[name])
    for name, kernel in kernels.items():
        times = max(3, int(0.04 / alone[name]))
        events = on(one, kernel, times)
        torch.cuda.synchronize()
        taken_alone = taken(events, times)
        for what, other in others.items():
            copies = int(1.3 * taken_alone * times * 1.6 / alone[what]) + 2
            beside_it = on(two, other, copies)
            events = on(one, kernel, times)
            torch.cuda.synchronize()
            say("beside", name, what.replace(" ", "-"), taken_alone, taken(events, times), alone[what], taken(beside_it, copies))
            time.sleep(0.05)


def main(part, *rest):
    torch.set_default_device("cuda")
    torch._dynamo.config.cache_size_limit = 64
    if part != "host":
        torch.set_grad_enabled(False)
    {"attention": attention, "decode": decode, "prefill": prefill, "host": host, "beside": beside}[part](*rest)


if __name__ == "__main__":
    main(*sys.argv[1:])
