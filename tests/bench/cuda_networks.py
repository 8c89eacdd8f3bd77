#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps of networks beside decoders in training, and of generation, on one CUDA device by PyTorch, torchvision and transformers:

    python3 tests/bench/cuda_networks.py > networks.tsv     # as tests/golden/h200/networks.tsv, in six minutes

Training: autocast to bfloat16, channels last, fused AdamW; as the libraries run it (eager) and by torch.compile. Generation: layers
compiled, a static cache, one CUDA graph a token. Medians."""
import statistics
import subprocess
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

from cuda_timing import captured, seconds_of

RUNS = [("resnet resnet-50", 256), ("resnet resnet-50", 64), ("resnet resnet-152", 128), ("resnet wide-resnet-50", 128), ("vgg vgg-16", 128),
        ("densenet densenet-121", 128), ("inception3 inception3", 128), ("vit vit-l16", 64), ("bert bert-large", 32), ("unet unet-3d", 4),
        ("lstm-lm 2x512", 128)]
COMPILED = ("resnet resnet-50", "vit vit-l16", "bert bert-large")
# Those of torchvision that no family here is like are planned as ONNX files of it (torch_exports.py).
VISION = ("convnext_tiny", "swin_t", "efficientnet_b0", "mobilenet_v3_large", "regnet_y_3_2gf")
MORE = [(f"{name} {name}", 128) for name in VISION] + [("t5 t5-base", 16), ("unet unet-2d", 8), ("lstm-lm 2x2048", 64), ("vit vit-b16", 128), ("bert bert-base", 64)]
MORE_COMPILED = [("vit vit-l16", 64), ("bert bert-large", 32), ("resnet resnet-152", 128), ("t5 t5-base", 16), ("unet unet-2d", 8),
                 ("convnext_tiny convnext_tiny", 128), ("efficientnet_b0 efficientnet_b0", 128)]
LENGTHS = {"bert bert-large": 512, "bert bert-base": 512, "t5 t5-base": 512, "lstm-lm 2x512": 128, "lstm-lm 2x2048": 256}
# layers, width, heads, of keys, features, inner, vocabulary
LLAMAS = {"llama3-8b": (32, 4096, 32, 8, 128, 14336, 128256), "llama3.2-1b": (16, 2048, 32, 8, 64, 8192, 128256)}
DECODES = {"llama3-8b": ((1, 2048), (8, 2048), (32, 2048), (64, 1024), (1, 32768)), "llama3.2-1b": ((1, 2048), (16, 2048))}
PROMPTS = {"llama3-8b": ((1, 512), (1, 2048), (1, 8192), (8, 1024)), "llama3.2-1b": ((1, 2048),)}


def say(*values):
    print(*values, sep="\t", flush=True)


class Unet(nn.Module):
    """LBANN's: three levels of two normalised convolutions, pooled, and back up beside what was kept."""

    def __init__(self, w=32):
        super().__init__()

        def block(i, a, b):
            return nn.Sequential(nn.Conv3d(i, a, 3, padding=1, bias=False), nn.BatchNorm3d(a), nn.ReLU(),
                                 nn.Conv3d(a, b, 3, padding=1, bias=False), nn.BatchNorm3d(b), nn.ReLU())

        self.down = nn.ModuleList([block(1, w, 2 * w), block(2 * w, 2 * w, 4 * w), block(4 * w, 4 * w, 8 * w), block(8 * w, 8 * w, 16 * w)])
        self.up = nn.ModuleList([nn.ConvTranspose3d(c * w, c * w, 2, 2) for c in (16, 8, 4)])
        self.after = nn.ModuleList([block(24 * w, 8 * w, 8 * w), block(12 * w, 4 * w, 4 * w), block(6 * w, 2 * w, 2 * w)])
        self.head = nn.Conv3d(2 * w, 3, 1)

    def forward(self, x):
        kept = []
        for part in self.down[:3]:
            kept.append(part(x))
            x = F.max_pool3d(kept[-1], 2)
        x = self.down[3](x)
        for up, after in zip(self.up, self.after):
            x = after(torch.cat([kept.pop(), up(x)], 1))
        return self.head(x)


class FlatUnet(nn.Module):
    """The first one's, filled up so that sizes stay: five levels of two convolutions, no norms."""

    def __init__(self, w=64):
        super().__init__()

        def block(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.ReLU(), nn.Conv2d(o, o, 3, padding=1), nn.ReLU())

        self.down = nn.ModuleList(block(w << i >> 1 if i else 1, w << i) for i in range(5))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w << i, w << i, 2, 2) for i in range(4))
        self.after = nn.ModuleList(block(2 * w << i, w << i) for i in range(4))
        self.head = nn.Conv2d(w, 2, 1)

    def forward(self, x):
        kept = []
        for part in self.down[:4]:
            kept.append(part(x))
            x = F.max_pool2d(kept[-1], 2)
        x = self.down[4](x)
        for i in (3, 2, 1, 0):
            x = self.after[i](torch.cat([kept[i], self.up[i](x)], 1))
        return self.head(x)


class Pair(nn.Module):
    """An encoder and a decoder that read the same text."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(input_ids=x, decoder_input_ids=x).logits


class Recurrent(nn.Module):
    def __init__(self, vocab=32000, width=1024):
        super().__init__()
        self.embedding, self.cells = nn.Embedding(vocab, width), nn.LSTM(width, width, 2, batch_first=True)
        self.head = nn.Linear(width, vocab)

    def forward(self, x):
        return self.head(self.cells(self.embedding(x))[0])


def network(name, batch):
    """The model, what it reads and what it should say."""
    import torchvision.models as vision
    import torchvision.ops as vision_ops
    if name == "unet unet-3d":
        x = torch.randn(batch, 1, 128, 128, 128).to(memory_format=torch.channels_last_3d)
        return Unet().to(memory_format=torch.channels_last_3d), x, torch.randint(0, 3, (batch, 128, 128, 128))
    if name == "unet unet-2d":
        x = torch.randn(batch, 1, 512, 512).to(memory_format=torch.channels_last)
        return FlatUnet().to(memory_format=torch.channels_last), x, torch.randint(0, 2, (batch, 512, 512))
    if name.startswith("lstm-lm"):
        text = torch.randint(0, 32000, (batch, LENGTHS[name] + 1))
        return Recurrent(width={"lstm-lm 2x512": 1024, "lstm-lm 2x2048": 2048}[name]), text[:, :-1], text[:, 1:]
    if name.startswith("bert"):
        from transformers import BertConfig, BertForMaskedLM
        text, large = torch.randint(0, 30522, (batch, 512)), name == "bert bert-large"
        sizes = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096} if large else {}
        return BertForMaskedLM(BertConfig(**sizes, hidden_dropout_prob=0, attention_probs_dropout_prob=0)), text, text
    if name == "t5 t5-base":
        from transformers import T5Config, T5ForConditionalGeneration
        text = torch.randint(0, 32128, (batch, 512))
        return Pair(T5ForConditionalGeneration(T5Config(d_model=768, d_kv=64, d_ff=3072, num_layers=12, num_heads=12, dropout_rate=0, use_cache=False))), text, text
    if name.split()[1] in VISION:
        model = getattr(vision, name.split()[1])()
        for part in model.modules():
            if isinstance(part, (nn.Dropout, vision_ops.StochasticDepth)):
                part.p = 0.0
        x = torch.randn(batch, 3, 224, 224).to(memory_format=torch.channels_last)
        return model.to(memory_format=torch.channels_last), x, torch.randint(0, 1000, (batch,))
    makes = {"resnet resnet-50": vision.resnet50, "resnet resnet-152": vision.resnet152, "resnet wide-resnet-50": vision.wide_resnet50_2,
             "vgg vgg-16": vision.vgg16, "densenet densenet-121": vision.densenet121, "vit vit-l16": vision.vit_l_16, "vit vit-b16": vision.vit_b_16,
             "inception3 inception3": lambda: vision.inception_v3(aux_logits=False, init_weights=False)}
    side = 299 if name.startswith("inception") else 224
    x = torch.randn(batch, 3, side, side).to(memory_format=torch.channels_last)
    return makes[name]().to(memory_format=torch.channels_last), x, torch.randint(0, 1000, (batch,))


def train(name, batch, how):
    torch.backends.cudnn.benchmark = True
    model, x, y = network(name, batch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    runner = torch.compile(model) if how == "compiled" else model

    def step():
        begin = time.time()
        with torch.autocast("cuda", torch.bfloat16):
            out = runner(x)
            out = getattr(out, "logits", out)
            loss = F.cross_entropy(out if out.dim() != 3 else out.flatten(0, 1), y if out.dim() != 3 else y.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        return time.time() - begin

    for _ in range(4):
        step()
    seconds = statistics.median(step() for _ in range(12))
    say("train", *name.split(), batch, LENGTHS.get(name, "-"), how, f"{seconds:.5f}", f"{torch.cuda.max_memory_allocated() / 2 ** 30:.2f}",
        f"{torch.cuda.max_memory_reserved() / 2 ** 30:.2f}")


def generate(name):
    torch.set_default_dtype(torch.bfloat16)
    torch.set_grad_enabled(False)
    torch._dynamo.config.cache_size_limit = 64
    count, width, heads, shared, features, inner, vocab = LLAMAS[name]

    def drawn(*shape):
        return torch.randn(*shape) * shape[-1] ** -0.5

    layers = [(drawn((heads + 2 * shared) * features, width), drawn(width, heads * features), drawn(2 * inner, width), drawn(width, inner))
              for _ in range(count)]
    embedding, head, one = drawn(vocab, width), drawn(vocab, width), torch.ones(width)
    angles = torch.outer(torch.arange(40000).float(), 500000.0 ** -(torch.arange(0, features, 2).float() / features))
    cos, sin = angles.cos(), angles.sin()

    def turn(x, at):
        (a, b), c, s = x.float().chunk(2, -1), cos[at][:, None], sin[at][:, None]
        return torch.cat([a * c - b * s, b * c + a * s], -1).to(torch.bfloat16)

    @torch.compile(dynamic=False)
    def layer(x, weights, cache, at):
        rows, length = x.shape[:2]
        q, k, v = F.linear(F.rms_norm(x, (width,), one), weights[0]).split([n * features for n in (heads, shared, shared)], -1)
        q, k = turn(q.view(rows, length, heads, features), at).transpose(1, 2), turn(k.view(rows, length, shared, features), at).transpose(1, 2)
        v = v.view(rows, length, shared, features).transpose(1, 2)
        if cache is None:
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        else:
            cache[0].index_copy_(2, at, k)
            cache[1].index_copy_(2, at, v)
            a = F.scaled_dot_product_attention(q.reshape(rows, shared, heads // shared, features), *cache).reshape(rows, heads, 1, features)
        x = x + F.linear(a.transpose(1, 2).reshape(rows, length, heads * features), weights[1])
        gate, up = F.linear(F.rms_norm(x, (width,), one), weights[2]).chunk(2, -1)
        return x + F.linear(F.silu(gate) * up, weights[3])

    def last(x):
        return F.linear(F.rms_norm(x[:, -1:], (width,), one), head).argmax(-1)

    for rows, length in DECODES[name]:
        caches = [(torch.randn(rows, shared, length, features), torch.randn(rows, shared, length, features)) for _ in layers]
        token, at = torch.randint(0, vocab, (rows, 1)), torch.tensor([length - 1])

        def decode():
            x = F.embedding(token, embedding)
            for weights, cache in zip(layers, caches):
                x = layer(x, weights, cache, at)
            return last(x)

        say("decode", "llama", name, rows, length, "compiled", f"{seconds_of(captured(decode)):.6f}", "-")
    for rows, length in PROMPTS[name]:
        text, at = torch.randint(0, vocab, (rows, length)), torch.arange(length)

        def prompt():
            x = F.embedding(text, embedding)
            for weights in layers:
                x = layer(x, weights, None, at)
            return last(x)

        say("prefill", "llama", name, rows, length, "compiled", f"{seconds_of(prompt, 8):.6f}", "-")


if len(sys.argv) > 1:
    torch.set_default_device("cuda")
    generate(sys.argv[2]) if sys.argv[1] == "generate" else train(sys.argv[1], int(sys.argv[2]), sys.argv[3])
else:
    say("what", "family", "preset", "batch", "length", "how", "seconds", "GiB", "reserved")
    for run in [("generate", name) for name in LLAMAS] + [(name, str(batch), "eager") for name, batch in RUNS] + \
            [(name, str(batch), "compiled") for name, batch in RUNS if name in COMPILED and batch != 64 or name == "vit vit-l16"] + \
            [(name, str(batch), "eager") for name, batch in MORE] + [(name, str(batch), "compiled") for name, batch in MORE_COMPILED]:
        subprocess.run([sys.executable, __file__, *run], check=True)
