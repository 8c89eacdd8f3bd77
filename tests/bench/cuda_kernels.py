#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures the kernels of one CUDA device by PyTorch (2.5 or later), in two minutes, for `meshtf-plan fit`:

    python3 tests/bench/cuda_kernels.py sweeps
    meshtf-plan fit --machine h100 --products bf16=sweeps/products.bf16.txt --attention bf16=sweeps/attention.bf16.txt \\
        --passes elementwise=sweeps/passes.elementwise.txt --passes rows=sweeps/passes.rows.txt \\
        --passes update=sweeps/passes.update.txt --passes gather=sweeps/passes.gather.txt -o mine.json

Medians of events. Between two measurements the device rests, since hot ones run at lower clocks: what hours of training
reach is less than what is found here (an H200's products 0.73 to 0.80 of the peak in bursts, 0.66 without rest)."""
import os
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
files = {}


def say(name, *numbers):
    if name not in files:
        files[name] = open(os.path.join(folder, name + ".txt"), "w")
        print(f"# {torch.cuda.get_device_name()}, PyTorch {torch.__version__}", file=files[name])
    print(*(f"{x:.6g}" for x in numbers), file=files[name], flush=True)


def seconds(call, budget=0.03):
    """Median seconds of a call, after a rest."""
    call()
    torch.cuda.synchronize()
    time.sleep(0.05)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    while len(times) < 3 or (sum(times) < budget and len(times) < 50):
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e-3)
    return sorted(times)[len(times) // 2]


def in_graph(calls):
    """Seconds of one of several calls that a captured graph runs one after another, so that no host is waited for."""
    calls[0]()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    return seconds(graph.replay) / len(calls)


def drawn(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def products():
    shapes = {(s, s, s) for s in (256, 512, 1024, 2048, 4096, 8192, 16384)} | {(4097, 4097, 4097), (8192, 50257, 1600)}
    for m in (128, 512, 1024, 2048, 4096, 8192, 16384):
        for n, k in ((1024, 4096), (4096, 4096), (14336, 4096), (4096, 14336), (2880, 2880), (768, 2048), (2048, 768), (3072, 768),
                     (8192, 8192), (28672, 8192), (3584, 8192)):
            shapes.add((m, n, k))
    for m, n, k in sorted(shapes):
        # As many operands as fill the cache, so that none is found there.
        copies = min(4, int(120e6 / (2 * (m * k + n * k + m * n))) + 1)
        pairs = [(drawn(m, k), drawn(n, k)) for _ in range(copies)]
        result = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        calls = [lambda a=a, b=b: torch.mm(a, b.t(), out=result) for a, b in pairs]
        say("products.bf16", m, n, k, in_graph(calls * max(1, min(40, int(4e11 / (m * n * k * copies))))))
    for m, n in ((64, 64), (64, 256), (128, 512), (256, 256), (256, 1024), (512, 2048), (1024, 1024), (768, 3072)):
        for k in (2048, 8192, 32768, 131072, 802816):
            a, b, result = drawn(k, m), drawn(k, n), torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
            say("products_deep.bf16", m, n, k, in_graph([lambda: torch.mm(a.t(), b, out=result)] * 4))


def attention():
    for features in (64, 128, 256):
        for length in (512, 1024, 2048, 4096, 8192, 16384):
            for causal in (True, False):
                rows, heads = max(1, 8192 // length), 4096 // features
                q, k, v = (drawn(rows, heads, length, features).requires_grad_() for _ in range(3))
                weights = torch.randn_like(q)
                with sdpa_kernel([SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION], set_priority=True):
                    out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
                    forward = seconds(lambda: F.scaled_dot_product_attention(q.detach(), k.detach(), v.detach(), is_causal=causal))
                    backward = seconds(lambda: torch.autograd.grad(out, (q, k, v), weights, retain_graph=True))
                say("attention.bf16", features, length, length / 2 if causal else length, rows * heads, forward, backward)


def passes():
    for power in range(20, 31):
        x = drawn(1 << power)
        y, rows, scale = torch.empty_like(x), x.view(-1, 4096), drawn(4096)
        order = torch.randperm(rows.shape[0], device="cuda")
        size = 4 << power
        say("passes.elementwise", size, in_graph([lambda: torch.add(x, x, out=y)] * 4))
        say("passes.rows", size, in_graph([lambda: F.rms_norm(rows, (4096,), scale)] * 4))
        say("passes.gather", size, in_graph([lambda: torch.index_select(rows, 0, order, out=y.view(-1, 4096))] * 4))
    for power in (24, 26, 28):
        weights = [torch.zeros(1 << power, device="cuda", requires_grad=True)]
        weights[0].grad = torch.ones_like(weights[0])
        optimizer = torch.optim.AdamW(weights, fused=True)
        say("passes.update", 28 << power, seconds(optimizer.step))


for measure in (products, attention, passes):
    measure()
