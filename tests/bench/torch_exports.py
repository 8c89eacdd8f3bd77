# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks as people export them: torchvision's, and small ones written here with what PyTorch offers.

    torch_exports.py list                names, one a line
    torch_exports.py export NAME         NAME.onnx, and of examples in.npy what it makes, out.npy
    torch_exports.py compare NAME        a row: how far scores.npy is from out.npy; status 1 where that is far
"""
import math
import sys
import warnings

import numpy
import torch
import torchvision
from torch import nn
from torch.nn import functional as F

WORDS, LENGTH, WIDTH = 50, 12, 32


class Recurrent(nn.Module):
    """Two layers of both directions, of which the last place is read."""

    def __init__(self, cell):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 16)
        self.cell = cell(16, 24, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(48, 7)

    def forward(self, x):
        return self.head(self.cell(self.embed(x))[0][:, -1])


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 64, activation="gelu", norm_first=True, batch_first=True)
        self.embed, self.layers, self.head = nn.Embedding(WORDS, WIDTH), nn.TransformerEncoder(layer, 3), nn.Linear(WIDTH, 5)

    def forward(self, x):
        return self.head(self.layers(self.embed(x)).mean(1))


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS)
        self.layers = nn.Transformer(WIDTH, 4, 2, 2, 64, batch_first=True)

    def forward(self, x):
        mask = self.layers.generate_square_subsequent_mask(x.shape[1])
        return self.head(self.layers(self.embed(x), self.embed(x), tgt_mask=mask))


class Decoder(nn.Module):
    """Causal attention by masked_fill, of grouped queries with rotary positions by halves."""

    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS)
        self.q, self.k, self.v = nn.Linear(WIDTH, 32), nn.Linear(WIDTH, 16), nn.Linear(WIDTH, 16)
        self.register_buffer("seen", torch.tril(torch.ones(64, 64)).view(1, 1, 64, 64))

    def turned(self, x):
        angles = torch.outer(torch.arange(x.shape[2]).float(), 10000 ** (-torch.arange(0, 8, 2).float() / 8))
        cos, sin = torch.cat([angles, angles], -1).cos(), torch.cat([angles, angles], -1).sin()
        return x * cos + torch.cat([-x[..., 4:], x[..., :4]], -1) * sin

    def forward(self, x):
        n, t = x.shape
        y = self.embed(x)
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
        q = self.turned(self.q(y).view(n, t, 4, 8).transpose(1, 2))
        k = self.turned(self.k(y).view(n, t, 2, 8).transpose(1, 2))
        v = self.v(y).view(n, t, 2, 8).transpose(1, 2)
        k, v = (z[:, :, None].expand(n, 2, 2, t, 8).reshape(n, 4, t, 8) for z in (k, v))
        scores = (q @ k.transpose(2, 3) / math.sqrt(8)).masked_fill(self.seen[:, :, :t, :t] == 0, float("-inf"))
        return self.head((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, WIDTH))


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(12, 4)
        self.up, self.down = (nn.Parameter(torch.randn(4, *sides) * 0.2) for sides in ((12, 24), (24, 12)))

    def forward(self, x):
        p = self.router(x).softmax(-1)
        values, chosen = p.topk(2, -1)
        gates = torch.zeros_like(p).scatter(-1, chosen, values / values.sum(-1, keepdim=True))
        hidden = F.silu(torch.einsum("bd,edf->bef", x, self.up))
        return torch.einsum("bef,efd,be->bd", hidden, self.down, gates)


class Waves(nn.Module):
    """Gated convolutions, further and further apart."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv1d(4, 16, 1), nn.Conv1d(16, 6, 1)
        self.gated = nn.ModuleList(nn.utils.weight_norm(nn.Conv1d(16, 32, 2, dilation=2**i)) for i in range(5))

    def forward(self, x):
        y = self.first(x)
        for conv in self.gated:
            a, b = conv(F.pad(y, (conv.dilation[0], 0))).chunk(2, 1)
            y = y + torch.tanh(a) * torch.sigmoid(b)
        return self.last(F.elu(y))[..., -1]


class Unet(nn.Module):
    def __init__(self):
        super().__init__()

        def pair(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.InstanceNorm2d(b, affine=True), nn.LeakyReLU(0.01),
                                 nn.Conv2d(b, b, 3, padding=1), nn.GroupNorm(4, b), nn.SiLU())

        self.down, self.bottom, self.up = pair(3, 8), pair(8, 16), nn.ConvTranspose2d(16, 8, 2, 2)
        self.last, self.head = pair(16, 8), nn.Conv2d(16, 4, 1)

    def forward(self, x):
        a = self.down(x)
        b = self.bottom(F.max_pool2d(a, 2))
        c = self.last(torch.cat([self.up(b), a], 1))
        return self.head(torch.cat([c, F.interpolate(b, scale_factor=2, mode="bilinear")[:, :8]], 1))


class Painter(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(16, 64 * 4 * 4)
        self.rest = nn.Sequential(nn.BatchNorm2d(64), nn.ReLU(), nn.ConvTranspose2d(64, 32, 4, 2, 1, bias=False),
                                  nn.BatchNorm2d(32), nn.ReLU(), nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Tanh())

    def forward(self, x):
        return self.rest(self.first(x).view(-1, 64, 4, 4))


class Chain(nn.Module):
    """The forward pass of a conditional random field."""

    def __init__(self):
        super().__init__()
        self.emit, self.follow = nn.Linear(8, 4), nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        emitted = self.emit(x)
        alpha = emitted[:, 0]
        for i in range(1, x.shape[1]):
            alpha = torch.logsumexp(alpha[:, :, None] + self.follow, 1) + emitted[:, i]
        return alpha


class Neighbours(nn.Module):
    """What a pixel takes of the nine around it."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Conv2d(3, 8, 1)

    def forward(self, x):
        y = self.mix(x)
        around = F.unfold(y, 3, padding=1).view(x.shape[0], 8, 9, -1)
        weights = (around * y.flatten(2)[:, :, None]).sum(1).softmax(1)
        return (around * weights[:, None]).sum(2).mean(-1)


def words():
    return torch.randint(0, WORDS, (4, LENGTH))


WRITTEN = {
    "lstm": (lambda: Recurrent(nn.LSTM), words), "gru": (lambda: Recurrent(nn.GRU), words),
    "encoder": (Encoder, words), "translator": (Translator, words), "decoder": (Decoder, words),
    "experts": (Experts, lambda: torch.randn(4, 12)), "waves": (Waves, lambda: torch.randn(4, 4, 40)),
    "unet": (Unet, lambda: torch.randn(4, 3, 16, 16)), "painter": (Painter, lambda: torch.randn(4, 16)),
    "chain": (Chain, lambda: torch.randn(4, 6, 8)), "neighbours": (Neighbours, lambda: torch.randn(4, 3, 8, 8)),
}
VISION = ["resnet18", "resnext50_32x4d", "squeezenet1_1", "mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2_x0_5",
          "mnasnet0_5", "efficientnet_b0", "efficientnet_v2_s", "regnet_y_400mf", "convnext_tiny", "densenet121",
          "googlenet", "inception_v3", "vit_b_32", "swin_t", "maxvit_t", "segmentation.lraspp_mobilenet_v3_large",
          "segmentation.deeplabv3_mobilenet_v3_large", "segmentation.fcn_resnet50", "video.r3d_18",
          "video.r2plus1d_18"]
SIDES = {"inception_v3": 80, "maxvit_t": 224, "vit_b_32": 32}


def picture_network(name):
    options = {"weights": None}
    if name.startswith("segmentation"):
        options["weights_backbone"] = None
    if name in ("googlenet", "inception_v3"):
        options.update(init_weights=True, aux_logits=False)
    if name.startswith("vit"):
        options["image_size"] = SIDES[name]
    module = torchvision.models
    for part in name.split("."):
        module = getattr(module, part)
    side = SIDES.get(name, 64)
    return module(**options), torch.randn((1, 3, 4, side, side) if name.startswith("video") else (2, 3, side, side))


def drawn(model):
    """No statistic, weight of a norm or last layer is what it begins with."""
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    for parameter in model.parameters():
        if parameter.dim() == 1 or not parameter.any():
            nn.init.normal_(parameter, float(parameter.detach().mean()), 0.1)
    return model.eval()


def export(name):
    torch.manual_seed(1)
    model, x = (part() for part in WRITTEN[name]) if name in WRITTEN else picture_network(name)
    with torch.no_grad():
        y = drawn(model)(x)
    if isinstance(y, dict):
        y = y["out"]
    torch.onnx.export(model, x, name + ".onnx", opset_version=16)
    numpy.save("in.npy", x.numpy())
    numpy.save("out.npy", y.numpy())


def compare(name):
    ours, theirs = numpy.load("scores.npy"), numpy.load("out.npy")
    largest = abs(theirs).max()
    apart = abs(ours.reshape(theirs.shape) - theirs).max() / largest
    print(f"{name:<42} {'x'.join(map(str, theirs.shape)):<14} {largest:>9.4g} {apart:>9.1e}")
    return apart < 1e-4


warnings.filterwarnings("ignore")
if sys.argv[1] == "list":
    print("\n".join([*WRITTEN, *VISION]))
elif sys.argv[1] == "export":
    export(sys.argv[2])
else:
    sys.exit(not compare(sys.argv[2]))
