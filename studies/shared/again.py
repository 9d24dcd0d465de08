"""Verdicts derived again: plain torch, models and loops of their own, seeds from 20 on.

``python -m studies.shared.again`` draws twelve of the claims whose rule or measure changed after a
review, and prints what `again.md` keeps. Data and the weights of large models come from packages.
"""

import math
import random
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

import minivit
from vitlab.claims.rules import half_width
from vitlab.convert.dinov2 import dinov2_small_saliency
from vitlab.data import load_data
from vitlab.data.photographs import PHOTOGRAPHS, crops, photograph
from vitlab.data.shapes import draw_shapes

SEEDS, LOT = range(20, 25), 46
CHANGED = """R23 R27 R28 R29 R31 R63 H01 H03 H05 H13 H17 H19 H20 H23 H26 H27 H28 H30 H32 H34 H35 C22
    V02 V28 L14"""  # when the lot was drawn


class ViT(nn.Module):
    """Pre-norm; read by a class token, the mean of all tokens, or a learned query."""

    def __init__(self, size: int, patch: int, channels: int, depth: int, pool="mean", dim=32):
        super().__init__()
        self.embed = nn.Conv2d(channels, dim, patch, patch)
        self.first = nn.Parameter(0.02 * torch.randn(1, 1, dim))  # class token, or query
        self.places = nn.Parameter(0.02 * torch.randn(1, (size // patch) ** 2, dim))
        layer = (nn.TransformerEncoderLayer(dim, dim // 16, 2 * dim, 0, "gelu", 1e-6, True, True)
                 for _ in range(depth))  # fmt: skip
        self.blocks, self.norm = nn.ModuleList(layer), nn.LayerNorm(dim)
        self.pooling = nn.MultiheadAttention(dim, 2, batch_first=True)
        self.head, self.pool = nn.Linear(dim, 10), pool

    def maps(self, x: Tensor) -> list[Tensor]:
        x = self.embed(x).flatten(2).mT + self.places
        if self.pool == "class":
            x = torch.cat([self.first.repeat(len(x), 1, 1), x], 1)
        return [x, *(x := block(x) for block in self.blocks)]

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.maps(x)[-1])
        if self.pool == "attention":
            return self.head(self.pooling(self.first.expand(len(x), -1, -1), x, x)[0][:, 0])
        return self.head(x[:, 0] if self.pool == "class" else x.mean(1))


class Block(nn.Module):
    def __init__(self, channels: int, width: int, stride: int):
        super().__init__()
        conv = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        last = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.branch = nn.Sequential(
            conv, nn.BatchNorm2d(width), nn.ReLU(), last, nn.BatchNorm2d(width)
        )
        self.skip: nn.Module = nn.Identity()
        if channels != width:
            by_one = nn.Conv2d(channels, width, 1, stride, bias=False)
            self.skip = nn.Sequential(by_one, nn.BatchNorm2d(width))
        self.kept = 1.0  # of the branch; 0 leaves it out

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.skip(x) + self.kept * self.branch(x))


class ResNet(nn.Module):
    def __init__(self, blocks: int, w: int = 8):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, w, 3, padding=1, bias=False), nn.BatchNorm2d(w), nn.ReLU()
        )
        self.blocks, self.head = nn.ModuleList(), nn.Linear(4 * w, 10)
        for before, width in ((w, w), (w, 2 * w), (2 * w, 4 * w)):
            for i in range(blocks):
                sizes = (before, width, width // before) if i == 0 else (width, width, 1)
                self.blocks.append(Block(*sizes))

    def maps(self, x: Tensor) -> list[Tensor]:
        x = self.stem(x)
        return [x, *(x := block(x) for block in self.blocks)]

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.maps(x)[-1].mean((2, 3)))


class Reader(nn.Module):
    """One head of attention over pairs and a question, without positions."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Linear(40, 64), nn.Linear(64, 8)
        self.block = nn.TransformerEncoderLayer(64, 1, 64, 0, "gelu", 1e-6, True, True)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.block(self.embed(x))[:, -1])


def trained(
    model: Any, batch: Callable[[], tuple[Tensor, Tensor]], steps: int, rate: float, stop: int = 0
) -> Any:
    """By AdamW, whose rate rises over a tenth of the steps and falls to zero."""
    how = torch.optim.AdamW(model.parameters(), rate, weight_decay=0.05)
    plan = torch.optim.lr_scheduler.OneCycleLR(how, rate, steps, pct_start=0.1)
    for _ in range(stop or steps):
        x, y = batch()
        how.zero_grad()
        F.cross_entropy(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1)
        how.step()
        plan.step()
    return model.eval()


def of(x: Tensor, y: Tensor) -> Callable[[], tuple[Tensor, Tensor]]:
    def batch() -> tuple[Tensor, Tensor]:
        i = torch.randint(len(x), (64,))
        return x[i], y[i]

    return batch


def shapes(count: int, seed: int) -> tuple[Tensor, Tensor]:
    drawn = draw_shapes(count * 10 // 4, 20, seed=seed)
    few = drawn.labels < 4
    return (drawn.images[few] / 255 - 0.5) / 0.25, drawn.labels[few]


def ends(model: nn.Module, x: Tensor, y: Tensor) -> tuple[float, float]:
    """The smallest and the largest eigenvalue of the Hessian, by Lanczos with all vectors kept."""
    weights = list(model.parameters())
    with sdpa_kernel(SDPBackend.MATH):
        loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
        slope = torch.autograd.grad(loss, weights, create_graph=True, materialize_grads=True)
        flat = torch.cat([g.flatten() for g in slope])
        q = [F.normalize(torch.randn(len(flat)), dim=0)]
        rows = torch.zeros(40, 40)
        for i in range(40):
            again = torch.autograd.grad(
                flat @ q[i], weights, retain_graph=True, materialize_grads=True
            )
            v = torch.cat([g.flatten() for g in again])
            rows[i, : i + 1] = torch.stack([v @ u for u in q])
            for _ in range(2):
                v = v - sum((v @ u) * u for u in q)
            q.append(F.normalize(v, dim=0))
    values = torch.linalg.eigvalsh(rows)  # of the lower triangle
    return values[0].item(), values[-1].item()


def told(name: str, parts: Iterable[Iterable[float]]) -> None:
    """Prints of each part the mean, its 95 % interval, and all values."""
    for part in parts:
        x = np.array(list(part))
        low, high = x.mean() - half_width(x), x.mean() + half_width(x)
        print(
            f"{name}: {x.mean():.2f} ({low:.2f} to {high:.2f}); {x.round(2).tolist()}", flush=True
        )


def curvature() -> None:
    digits = load_data("DIGITS").train
    x, y = (digits.images.float() / 255 - 0.3) / 0.35, digits.labels
    found: dict[str, list[tuple[float, float]]] = {}
    for seed in SEEDS:
        for pool in ("class", "mean", "attention"):
            for amount in (len(x), len(x) // 10):
                torch.manual_seed(seed)
                model, some = ViT(8, 2, 1, 3, pool), torch.randperm(len(x))[:amount]
                trained(model, of(x[some], y[some]), 200, 3e-3, stop=20)
                few = some[:126]
                found.setdefault(f"{pool} {amount == len(x)}", []).append(
                    ends(model, x[few], y[few])
                )

    def halved(before: str, after: str, end: int) -> list[float]:
        pairs = zip(found[before], found[after], strict=True)
        return [math.log2(abs(a[end]) / abs(b[end])) for a, b in pairs]

    token = "class False"
    told("H03", [halved(token, "class True", 0), halved(token, "mean False", 0)])
    told("H20", [halved("class True", f"{pool} True", 1) for pool in ("mean", "attention")])


def pairs(count: int, length: int) -> tuple[Tensor, Tensor]:
    keys = F.normalize(torch.randn(count, length, 32), dim=-1)
    values, asked = torch.randint(8, (count, length)), torch.randint(length, (count,))
    tokens, rows = torch.cat([keys, F.one_hot(values, 8)], -1), torch.arange(count)
    last = F.pad(keys[rows, asked], (0, 8))
    return torch.cat([tokens, last[:, None]], 1), values[rows, asked]


@torch.no_grad()
def right(model: nn.Module, x: Tensor, y: Tensor) -> float:
    return torch.cat([model(part) for part in x.split(250)]).argmax(1).eq(y).double().mean().item()


def retrieval() -> None:
    found = []
    for seed in SEEDS:
        torch.manual_seed(seed)
        lengths = iter(torch.randint(4, 17, (3000,)).tolist())
        model = trained(Reader(), lambda: pairs(64, next(lengths)), 3000, 3e-3)  # noqa: B023
        found.append(right(model, *pairs(2000, 256)))
    told("V02", [found])


@torch.no_grad()
def without(model: ResNet, x: Tensor, y: Tensor) -> list[float]:
    """Points that leaving out each block costs."""
    costs, whole = [], right(model, x, y)
    block: Any
    for block in model.blocks:
        block.kept = 0.0
        costs.append(100 * (whole - right(model, x, y)))
        block.kept = 1.0
    return costs


def lesions() -> None:
    (x, y), test = shapes(2000, 21), shapes(1000, 22)
    gaps = []
    for seed in SEEDS:
        torch.manual_seed(seed)
        cost = torch.tensor(without(trained(ResNet(5), of(x, y), 200, 5e-3), *test)).view(3, 5)
        gaps.append((cost[:, 1:3].mean(1) - cost[:, 3:].mean(1)).tolist())
    told("H35", zip(*gaps, strict=True))


@torch.no_grad()
def variances(model: ViT | ResNet, x: Tensor) -> list[float]:
    """Of each map, the variance over positions."""
    maps = (x if x.ndim == 3 else x.flatten(2).mT for x in model.maps(x))
    return [x.var(1, correction=0).mean().item() for x in maps]


def growth() -> None:
    (x, y), (test, _) = shapes(2000, 21), shapes(1000, 22)
    shares = []
    for seed in SEEDS:
        torch.manual_seed(seed)
        v = variances(trained(ViT(20, 4, 3, 4), of(x, y), 200, 5e-3), test[:500])
        r = variances(trained(ResNet(3), of(x, y), 80, 5e-3), test[:500])
        up = [v[i + 1] > v[i] for i in range(4)] + [r[i + 1] > r[i] for i in (0, 1, 2, 4, 5, 7, 8)]
        peaks = [r[i] > max(r[i - 1], *r[i + 1 : i + 2]) for i in (3, 6)] + [r[9] > r[8]]
        shares.append((sum(up) / 11, sum(peaks) / 3))
    told("H32", zip(*shares, strict=True))


def positions() -> None:
    table = minivit.load("cifar10_vit_gap").state_dict()["positions.table"]
    alike = F.cosine_similarity(table[:, None], table, dim=-1)
    places = torch.cartesian_prod(torch.arange(8), torch.arange(8)).float()
    apart = torch.cdist(places, places, p=1)
    print(f"V28: {alike[apart == 1].mean() - alike[apart > 1].mean():.2f}")


def recovered(kernel: Tensor, images: Tensor) -> float:
    """Decibels, at most 40, after 100 steps of gradient descent from zeros on a convolution's
    output, with the step 1 / (largest singular value)²."""
    kernel = kernel.detach().double()

    def twice(x: Tensor) -> Tensor:  # the convolution, then its transpose
        out = F.conv2d(x, kernel, stride=2, padding=3)
        return F.conv_transpose2d(out, kernel, stride=2, padding=3, output_padding=1)

    v = torch.randn_like(images[:1])
    for _ in range(300):
        v = twice(v) / v.norm()
    left = images
    for _ in range(100):
        left = left - twice(left) / v.norm()
    return min(40.0, 20 * math.log10(images.norm() / left.norm()))


def without_pattern(filters: Tensor) -> float:
    """The fraction made of no fewer waves than all but a hundredth of filters of noise."""

    def waves(x: Tensor) -> Tensor:
        power = torch.fft.fft2(x.detach()).abs().square().sum(1).flatten(1)
        power = power / power.sum(1, keepdim=True)  # a wave's is at two frequencies, but for 0
        return 1 / (2 * power.square().sum(1) - power[:, 0] ** 2)

    noise = torch.randn(2000, *filters.shape[1:])
    return (waves(filters) >= waves(noise).quantile(0.01)).double().mean().item()


def filters() -> None:
    def grey(n: int, seed: int) -> tuple[Tensor, Tensor]:
        images, of = crops(n, 28, seed=seed, names=tuple(PHOTOGRAPHS))
        images = images.float().mean(1, keepdim=True) / 255
        return (images - 0.45) / 0.25, torch.tensor([[*PHOTOGRAPHS].index(name) for name in of])

    (x, y), (few, _) = grey(3000, 30), grey(16, 31)
    rows = []
    for seed in range(20, 36):
        torch.manual_seed(seed)
        vit, first = ViT(28, 7, 1, 1, dim=64), nn.Conv2d(1, 16, 7, 2, 3, bias=False)
        nn.init.trunc_normal_(vit.embed.weight, std=1 / 7)  # both as torchvision begins
        nn.init.kaiming_normal_(first.weight, mode="fan_out", nonlinearity="relu")
        resnet = nn.Sequential(
            *(first, nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(3, 2, 1), Block(16, 16, 1)),
            *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)),
        )
        before = recovered(first.weight, few.double())
        for model, rate in ((vit, 1e-2), (resnet, 3e-2)):  # the study's best
            trained(model, of(x, y), 2000, rate)
        lacking = without_pattern(vit.embed.weight), without_pattern(first.weight)
        rows.append((*lacking, recovered(first.weight, few.double()) - before))
    *lack, gained = zip(*rows, strict=True)
    told("R31, ViTs and ResNets", lack)
    told("R28", [gained])


def blurred(x: Tensor, std: float) -> Tensor:
    row = torch.exp(-torch.tensor([1.0, 0.0, 1.0]) / 2 / max(std, 1e-3) ** 2)
    kernel = torch.outer(row, row) / row.sum() ** 2
    x = F.pad(x, (1, 1, 1, 1), mode="replicate")
    return F.conv2d(x, kernel.expand(3, 1, 3, 3), groups=3)


def descended(model: ViT | ResNet, at: int, image: Tensor, rate: float) -> tuple[float, float]:
    """The distance that 100 steps from noise leave after a block, and the image's decibels."""
    aim = model.maps(image)[at].detach()
    x = torch.randn(image.shape, generator=torch.Generator().manual_seed(0))
    for step in range(100):
        x.requires_grad_(True)
        distance = (model.maps(x)[at] - aim).norm()
        (slope,) = torch.autograd.grad(distance, x)
        x = blurred(x.detach() - rate * slope, 2.4 * (1 - step / 99))
    left = (model.maps(x)[at] - aim).norm().item()
    decibels = -20 * (x - image).norm().log10().item()
    return (left if math.isfinite(left) else math.inf), decibels


def descent() -> None:
    image = (photograph("astronaut", 32)[None] / 255 - 0.5) / 0.25
    more = []
    for seed in range(20, 30):
        torch.manual_seed(seed)
        lost = []
        for model in (ResNet(2, 16).eval(), ViT(32, 8, 3, 6, "class", dim=48).eval()):
            first, last = (
                min(descended(model, at, image, 10 ** (k / 2 - 1)) for k in range(7))[1]
                for at in (1, 6)
            )
            lost.append(first - last)
        more.append(lost[0] - lost[1])
    told("R23", [more])


def embedding() -> None:
    """Photographs through the patches of the pretrained ViT and back, by least squares."""
    weight = dinov2_small_saliency().state_dict()["patch_embedding.projection.weight"].double()
    std = torch.tensor([0.229, 0.224, 0.225], dtype=torch.float64).view(3, 1)
    mean = torch.tensor([0.485, 0.456, 0.406], dtype=torch.float64).view(3, 1)

    def error(patches: Tensor, e: Tensor) -> Tensor:
        x = ((patches - mean) / std).flatten(1)
        back = torch.linalg.lstsq(e, e @ x.T, driver="gelsd").solution.T
        return ((back - x).unflatten(1, (3, 196)) * std).square().mean().log10()

    gained = []
    for name in PHOTOGRAPHS:
        image = photograph(name, 224).double() / 255
        patches = F.unfold(image[None], 14, stride=14)[0].T.unflatten(1, (3, 196))
        new = []
        for seed in SEEDS:
            torch.manual_seed(seed)
            new.append(error(patches, torch.randn(384, 588, dtype=torch.float64)))
        gained.append(10 * (sum(new) / len(new) - error(patches, weight.flatten(1))).item())
    told("R27", [gained])


def by_shape(model: Any, seed: int) -> float:
    """By how much more often a model goes by shape on low frequencies than on high ones."""
    like = model.preprocess
    mean, std = (torch.tensor(x).view(3, 1, 1) for x in (like.mean, like.std))
    model.head = nn.Identity()

    @torch.no_grad()
    def read(x: Tensor) -> np.ndarray:
        return torch.cat([model((part - mean) / std) for part in x.split(250)]).numpy()

    agree = draw_shapes(2500, seed=seed, typical=1)
    conflict = draw_shapes(500, seed=seed + 1, typical=0)
    x, wave = conflict.images / 255, torch.fft.fftfreq(32)
    low = torch.fft.ifft2(torch.fft.fft2(x) * (torch.hypot(wave[:, None], wave) < 4 / 32)).real
    known = read(agree.images / 255)
    shares = []
    for features in (read(low), read(x - low + x.mean((2, 3), keepdim=True))):
        answers = []
        for some in np.arange(2500).reshape(5, 500):
            reader = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=300))
            answers.append(reader.fit(known[some], agree.labels[some]).predict(features))
        shape, texture = (
            (torch.tensor(np.array(answers)) == cue).sum()
            for cue in (conflict.labels, conflict.textures)
        )
        shares.append((shape / (shape + texture)).item())
    return shares[0] - shares[1]


def cues() -> None:
    for name in ("vit", "vit_gap", "vit_cls", "vit_patch", "vit_conv"):
        model = minivit.load(f"cifar10_{name}")
        told(f"H28, {name}", [[by_shape(model, seed) for seed in (20, 30, 40)]])


if __name__ == "__main__":
    torch.set_num_threads(1)
    drawn = sorted(random.Random(LOT).sample(CHANGED.split(), 12))
    print(f"of {len(CHANGED.split())}, by the seed {LOT}: {', '.join(drawn)}")
    for measure in (positions, retrieval, growth, curvature, lesions, filters, descent, embedding,
                    cues):  # fmt: skip
        if not sys.argv[1:] or measure.__name__ in sys.argv[1:]:
            measure()
