"""How fast do models train beside torch's own layers? ``python -m studies.benchmarks.training -h``

A step is a forward and a backward pass and AdamW, on the same random images. Each model meets the
same network put together from stock layers: ``nn.TransformerEncoderLayer`` for the ViT,
``nn.Sequential`` for the Mixer, torchvision's ``BasicBlock`` for the ResNet. Rounds are interleaved
and ratios taken within a round, as in ``studies.benchmarks.speed``.
"""

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import minivit
from minivit.import_torchvision import imported
from studies.benchmarks import middle, parsed, parser
from studies.shared.timing import interleaved
from vitlab.training.optimiser import adamw
from vitlab.training.recipe import Recipe

BasicBlock = imported().models.resnet.BasicBlock


class Apply(nn.Module):
    """Applies a function of a tensor, such as a transposition."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


class Positions(nn.Module):
    """Learned positions, added."""

    def __init__(self, tokens: int, dim: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(tokens, dim) / 50)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table


class Residual(nn.Sequential):
    """Layers whose result is added to their input."""

    def forward(self, x: Tensor) -> Tensor:
        return x + super().forward(x)


def tokens_of(c: minivit.ViTConfig | minivit.MixerConfig) -> list[nn.Module]:
    """Images to tokens ``[batch, tokens, dim]``."""
    patches = nn.Conv2d(c.channels, c.dim, c.patch_size, stride=c.patch_size)
    return [patches, nn.Flatten(2), Apply(lambda x: x.transpose(1, 2))]


def stock_vit(c: minivit.ViTConfig) -> nn.Module:
    layers = [
        nn.TransformerEncoderLayer(
            c.dim, c.heads, c.hidden, 0.0, "gelu", batch_first=True, norm_first=True
        )
        for _ in range(c.depth)
    ]
    end = [nn.LayerNorm(c.dim), Apply(lambda x: x.mean(1)), nn.Linear(c.dim, c.classes)]
    return nn.Sequential(*tokens_of(c), Positions(c.grid[0] * c.grid[1], c.dim), *layers, *end)


def stock_mixer(c: minivit.MixerConfig) -> nn.Module:
    n = c.grid[0] * c.grid[1]
    layers: list[nn.Module] = []
    for _ in range(c.depth):
        turn = Apply(lambda x: x.transpose(1, 2))
        layers += [
            Residual(nn.LayerNorm(c.dim), turn, *_mlp(n, c.mixing_hidden), turn),
            Residual(nn.LayerNorm(c.dim), *_mlp(c.dim, round(c.dim * c.mlp_ratio))),
        ]
    end = [nn.LayerNorm(c.dim), Apply(lambda x: x.mean(1)), nn.Linear(c.dim, c.classes)]
    return nn.Sequential(*tokens_of(c), *layers, *end)


def _mlp(width: int, hidden: int) -> list[nn.Module]:
    return [nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width)]


def stock_resnet(c: minivit.ResNetConfig) -> nn.Module:
    def convolution(wide: int, to: int, side: int, stride: int) -> list[nn.Module]:
        layer = nn.Conv2d(wide, to, side, stride, side // 2, bias=False)
        return [layer, nn.BatchNorm2d(to)]

    layers, wide = [*convolution(c.channels, c.width, 3, 1), nn.ReLU()], c.width
    for i, blocks in enumerate(c.stages):
        to = c.width * 2**i
        for _ in range(blocks):
            narrows = wide != to
            down = nn.Sequential(*convolution(wide, to, 1, 2)) if narrows else None
            layers.append(BasicBlock(wide, to, 1 + narrows, down))
            wide = to
    return nn.Sequential(*layers, Apply(lambda x: x.mean((2, 3))), nn.Linear(wide, c.classes))


STOCK: dict[str, Callable[..., nn.Module]] = {
    "vit_32px": stock_vit,
    "mixer_32px": stock_mixer,
    "resnet_32px": stock_resnet,
}


def step(model: nn.Module, batch: int, precision: str) -> Callable[[], None]:
    """One training step on random images, as a call."""
    images, labels = torch.randn(batch, 3, 32, 32), torch.randint(0, 10, (batch,))
    optimiser = adamw(model, Recipe())

    def call() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            logits = model(images)
        optimiser.zero_grad()
        F.cross_entropy(logits.float(), labels).backward()
        optimiser.step()

    return call


def compare(name: str, batch: int, rounds: int) -> None:
    """Times a model of minivit's and its stock twin in both precisions: prints a row for each."""
    model = minivit.create(name)
    twins = {"minivit": model, "stock": STOCK[name](model.config)}
    sizes = {side: sum(p.numel() for p in twin.parameters()) for side, twin in twins.items()}
    assert sizes["minivit"] == sizes["stock"], (name, sizes)
    steps = {
        (side, precision): step(twin, batch, precision)
        for side, twin in twins.items()
        for precision in ("float32", "bfloat16")
    }
    times = {key: np.array(values) for key, values in interleaved(steps, rounds).items()}
    print(f"\n{name}")
    for (side, precision), values in times.items():
        beside = middle(times["stock", precision] / values)
        in_float32 = np.median(times["stock", "float32"] / values)
        print(
            f"  {side:8}{precision:9}{batch / np.median(values):8.0f} images/s   "
            f"{beside} times stock, {in_float32:.2f} times stock in float32"
        )


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--models", nargs="+", default=list(STOCK), choices=list(STOCK))
    options.add_argument("--batch", type=int, default=128)
    options = parsed(options)
    print(f"training, {options.threads} threads, batches of {options.batch}")
    for name in options.models:
        compare(name, options.batch, options.rounds)


if __name__ == "__main__":
    main()
