#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Training steps of one CUDA device by PyTorch (2.9 or later, for its grouped products), a row each as `meshtf-plan judge` reads them:

    python3 tests/bench/cuda_steps.py "h100 (700 W)" > mine.tsv && meshtf-plan judge mine.tsv

Weights and AdamW (fused) in float32, products in bfloat16 (8 bits where the name says so), gradients clipped, layers compiled unless the
name says eager; selective recomputation runs every second layer again. A process a model, or the one named after the hardware. Memory is what the allocator reserves, as torchtitan says it; notes say what is allocated
at most, and in each phase of a step: before it, forward, backward and in the update."""
import statistics
import subprocess
import sys
import time

# layers, width, heads, heads of keys, features, inner, gated, vocabulary, length, batch, experts, chosen, recompute
MODELS = {
    "llama8b-4l": (4, 4096, 32, 8, 128, 14336, 1, 32000, 4096, 2, 0, 0, "none"),
    "llama8b-4l-full": (4, 4096, 32, 8, 128, 14336, 1, 32000, 4096, 2, 0, 0, "full"),
    "llama1b": (16, 2048, 16, 16, 128, 5632, 1, 32000, 2048, 8, 0, 0, "none"),
    "gpt2-small": (12, 768, 12, 12, 64, 3072, 0, 50257, 1024, 16, 0, 0, "none"),
    "llama70b-2l": (2, 8192, 64, 8, 128, 28672, 1, 32000, 4096, 1, 0, 0, "none"),
    "qwen3-30b-4l": (4, 2048, 32, 4, 128, 768, 1, 32000, 4096, 2, 128, 8, "none"),
    "gptoss-2l": (2, 2880, 64, 8, 64, 2880, 1, 32000, 4096, 2, 32, 4, "none"),
    "gpt-350m": (24, 1024, 16, 16, 64, 4096, 0, 50257, 2048, 4, 0, 0, "none"),
    "mixtral-1l": (1, 4096, 32, 8, 128, 14336, 1, 32000, 4096, 2, 8, 2, "none"),
    "llama1b-full": (16, 2048, 16, 16, 128, 5632, 1, 32000, 2048, 8, 0, 0, "full"),
    "gpt2-small-full": (12, 768, 12, 12, 64, 3072, 0, 50257, 1024, 16, 0, 0, "full"),
    "gpt-350m-full": (24, 1024, 16, 16, 64, 4096, 0, 50257, 2048, 4, 0, 0, "full"),
    "llama8b-4l-1k": (4, 4096, 32, 8, 128, 14336, 1, 32000, 1024, 8, 0, 0, "none"),
    "llama8b-4l-16k": (4, 4096, 32, 8, 128, 14336, 1, 32000, 16384, 1, 0, 0, "none"),
    "llama8b-4l-32k-full": (4, 4096, 32, 8, 128, 14336, 1, 32000, 32768, 1, 0, 0, "full"),
    "gpt2-small-4b": (12, 768, 12, 12, 64, 3072, 0, 50257, 1024, 4, 0, 0, "none"),
    "gpt2-small-4k": (12, 768, 12, 12, 64, 3072, 0, 50257, 4096, 4, 0, 0, "none"),
    "llama8b-4l-eager": (4, 4096, 32, 8, 128, 14336, 1, 32000, 4096, 2, 0, 0, "none"),
    "llama1b-eager": (16, 2048, 16, 16, 128, 5632, 1, 32000, 2048, 8, 0, 0, "none"),
    "gpt2-small-eager": (12, 768, 12, 12, 64, 3072, 0, 50257, 1024, 16, 0, 0, "none"),
    "gpt-350m-eager": (24, 1024, 16, 16, 64, 4096, 0, 50257, 2048, 4, 0, 0, "none"),
    "llama1b-half": (16, 2048, 16, 16, 128, 5632, 1, 32000, 2048, 8, 0, 0, "selective"),
    "llama1b-8k": (16, 2048, 16, 16, 128, 5632, 1, 32000, 8192, 2, 0, 0, "none"),
    "llama1b-16k-half": (16, 2048, 16, 16, 128, 5632, 1, 32000, 16384, 1, 0, 0, "selective"),
    "llama1b-32k-full": (16, 2048, 16, 16, 128, 5632, 1, 32000, 32768, 1, 0, 0, "full"),
    "llama8b-2l-128k-words": (2, 4096, 32, 8, 128, 14336, 1, 128256, 4096, 2, 0, 0, "none"),
    "gpt3-xl": (24, 2048, 16, 16, 128, 8192, 0, 50257, 2048, 4, 0, 0, "none"),
    "mixtral-1l-full": (1, 4096, 32, 8, 128, 14336, 1, 32000, 4096, 2, 8, 2, "full"),
    "deepseek-2l": (2, 2048, 16, 16, 128, 1408, 1, 102400, 4096, 2, 64, 6, "none"),
    "llama8b-4l-fp8": (4, 4096, 32, 8, 128, 14336, 1, 32000, 4096, 2, 0, 0, "none"),
}
COLUMNS = (
    "id source hardware devices device_topology model layers d_model heads kv_heads d_head d_ff gated_ffn vocab seq_len global_batch "
    "micro_batch tp pp vp cp ep dp sharding sequence_parallel recompute precision software measured_quantity measured_value "
    "memory_GiB_per_device notes").split()


def compiled(name):
    return not name.endswith("-eager")


def narrow(name):
    return name.endswith("-fp8")


def row(hardware, name, seconds, reserved, allocated):
    import torch
    layers, width, heads, kv, features, inner, gated, vocab, length, batch, experts, chosen, recompute = MODELS[name]
    values = [name, "tests/bench/cuda_steps.py", hardware, 1, "one device", name, layers, width, heads, kv, features, inner, gated, vocab,
              length, batch, batch, 1, 1, 1, 1, 1, 1, "ddp", 0, recompute, "fp8 compute, fp32 weights + Adam" if narrow(name) else "bf16 compute, fp32 weights + Adam",
              f"pytorch {torch.__version__}, layers compiled" if compiled(name) else f"eager pytorch {torch.__version__}",
              "s_per_step", f"{seconds:.4f}", f"{reserved:.2f}", f"trust A; untied; {allocated}" + (f"; MoE {experts} experts top-{chosen}, dropless" if experts else "")]
    return "\t".join(str(value) for value in values)


def measure(hardware, name):
    import torch
    import torch.nn.functional as F
    from torch import nn
    from torch.utils.checkpoint import checkpoint
    layers, width, heads, kv, features, inner, gated, vocab, length, batch, experts, chosen, recompute = MODELS[name]
    half = torch.bfloat16
    torch.set_default_device("cuda")

    def weight(*shape):
        return nn.Parameter(torch.randn(*shape) * shape[-2] ** -0.5)

    class Narrow(torch.autograd.Function):
        """A product of 8 bits, scaled by each tensor's largest element."""

        @staticmethod
        def narrowed(x, to):
            scale = x.abs().max().float().clamp(min=1e-12) / torch.finfo(to).max
            return (x.float() / scale).to(to), scale

        @staticmethod
        def product(a, b):
            (left, one), (right, other) = a, b
            return torch._scaled_mm(left, right, scale_a=one, scale_b=other, out_dtype=half, use_fast_accum=True)

        @staticmethod
        def forward(context, x, weight):
            (rows, one), (columns, other) = (Narrow.narrowed(part, torch.float8_e4m3fn) for part in (x.flatten(0, -2), weight))
            context.save_for_backward(rows, one, columns, other)
            return Narrow.product((rows, one), (columns.t(), other)).view(*x.shape[:-1], -1)

        @staticmethod
        def backward(context, gradient):
            rows, one, columns, other = context.saved_tensors
            given, scale = Narrow.narrowed(gradient.flatten(0, -2), torch.float8_e5m2)
            of_x = Narrow.product((given, scale), (columns.t().contiguous().t(), other))
            of_weight = Narrow.product((given.t().contiguous(), scale), (rows.t().contiguous().t(), one))
            return of_x.view(*gradient.shape[:-1], -1), of_weight

    class Linear(nn.Module):
        def __init__(self, of, to):
            super().__init__()
            self.weight, self.bias = nn.Parameter(torch.randn(to, of) * of ** -0.5), None if gated else nn.Parameter(torch.zeros(to))

        def forward(self, x):
            if narrow(name):
                return Narrow.apply(x, self.weight.to(half))
            return F.linear(x, self.weight.to(half), None if self.bias is None else self.bias.to(half))

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.bias = nn.Parameter(torch.ones(width)), None if gated else nn.Parameter(torch.zeros(width))

        def forward(self, x):
            if self.bias is None:
                return F.rms_norm(x, (width,), self.scale.to(half))
            return F.layer_norm(x, (width,), self.scale.to(half), self.bias.to(half))

    class Experts(nn.Module):
        """Tokens in the order of their experts, three grouped products, and sums back."""

        def __init__(self):
            super().__init__()
            self.router = Linear(width, experts)
            self.gate, self.up, self.down = weight(experts, width, inner), weight(experts, width, inner), weight(experts, inner, width)

        def forward(self, x):
            tokens = x.reshape(-1, width)
            share, expert = torch.softmax(self.router(tokens).float(), -1).topk(chosen, -1)
            order = torch.argsort(expert.flatten(), stable=True)
            ends = (expert.flatten()[:, None] == torch.arange(experts, device=expert.device)).sum(0).cumsum(0).to(torch.int32)
            rows = tokens[order // chosen]
            hidden = F.silu(torch._grouped_mm(rows, self.gate.to(half), offs=ends)) * torch._grouped_mm(rows, self.up.to(half), offs=ends)
            out = torch._grouped_mm(hidden, self.down.to(half), offs=ends) * share.flatten()[order][:, None].to(half)
            return torch.zeros_like(tokens).index_add(0, order // chosen, out).view_as(x)

    class Dense(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down, self.gate = Linear(width, inner), Linear(inner, width), Linear(width, inner) if gated else None

        def forward(self, x):
            return self.down(F.silu(self.gate(x)) * self.up(x) if gated else F.gelu(self.up(x), approximate="tanh"))

    angles = torch.outer(torch.arange(length).float(), 10000.0 ** -(torch.arange(0, features, 2).float() / features))
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]

    def turn(x):
        a, b = x.float().chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(half)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.between = Norm(), Norm()
            self.q, self.k, self.v = Linear(width, heads * features), Linear(width, kv * features), Linear(width, kv * features)
            self.out, self.inner = Linear(heads * features, width), Experts() if experts else Dense()

        def forward(self, x):
            n = self.before(x)
            q, k, v = (part(n).view(batch, length, -1, features) for part in (self.q, self.k, self.v))
            if gated:
                q, k = turn(q), turn(k)
            context = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True,
                                                     enable_gqa=kv != heads)
            x = x + self.out(context.transpose(1, 2).reshape(batch, length, heads * features))
            return x + self.inner(self.between(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.layers = nn.Parameter(torch.randn(vocab, width) * 0.02), nn.ModuleList(Layer() for _ in range(layers))
            self.places = None if gated else nn.Parameter(torch.randn(length, width) * 0.02)
            self.norm, self.head = Norm(), nn.Parameter(torch.randn(vocab, width) * width ** -0.5)

        def forward(self, tokens, targets):
            x = F.embedding(tokens, self.embedding.to(half))
            if self.places is not None:
                x = x + self.places.to(half)
            every = {"none": layers + 1, "selective": 2, "full": 1}[recompute]
            for i, layer in enumerate(self.layers, 1):
                x = checkpoint(layer, x, use_reentrant=False) if i % every == 0 else layer(x)
            return F.cross_entropy(F.linear(self.norm(x), self.head.to(half)).float().flatten(0, 1), targets.flatten())

    model = Model()
    if compiled(name):
        for layer in model.layers:
            layer.compile(dynamic=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    text = torch.randint(0, vocab, (batch, length + 1))

    def update():
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    def step():
        begin = time.time()
        model(text[:, :-1], text[:, 1:]).backward()
        update()
        torch.cuda.synchronize()
        return time.time() - begin

    def peak(phase):
        torch.cuda.reset_peak_memory_stats()
        result = phase()
        torch.cuda.synchronize()
        peaks.append(torch.cuda.max_memory_allocated() / 2 ** 30)
        return result

    for _ in range(3):
        step()
    seconds = statistics.median(step() for _ in range(10))
    reserved, peaks = torch.cuda.max_memory_reserved() / 2 ** 30, [torch.cuda.memory_allocated() / 2 ** 30]
    peak(peak(lambda: model(text[:, :-1], text[:, 1:])).backward)
    peak(update)
    allocated = f"allocated {max(peaks):.2f} GiB, by phase " + " ".join(f"{x:.2f}" for x in peaks)
    print(row(hardware, name, seconds, reserved, allocated), flush=True)


if __name__ == "__main__" and len(sys.argv) == 3:
    measure(*sys.argv[1:])
elif __name__ == "__main__":
    print("\t".join(COLUMNS), flush=True)
    for model in MODELS:
        subprocess.run([sys.executable, __file__, sys.argv[1], model], check=True)
