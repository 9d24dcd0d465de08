"""How fast does a ViT train beside torch's own layers? ``python -m studies.benchmarks.training -h``

A step is a forward and a backward pass and AdamW, on the same random images, of ``vit_32px`` and of
the same network put together from ``nn.TransformerEncoderLayer``.
"""

import os
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
import tyro
from torch import Tensor, nn

import minivit
from studies.benchmarks import interleaved, middle
from vitlab.training.optimiser import adamw
from vitlab.training.recipe import Recipe


class Stock(nn.Module):
    """A ViT of stock layers, whose head reads the mean of all tokens."""

    def __init__(self, c: minivit.ViTConfig) -> None:
        super().__init__()
        self.patches = nn.Conv2d(c.channels, c.dim, c.patch_size, stride=c.patch_size)
        self.positions = nn.Parameter(torch.randn(c.grid[0] * c.grid[1], c.dim) / 50)
        layers = (
            nn.TransformerEncoderLayer(
                c.dim, c.heads, c.hidden, 0.0, "gelu", batch_first=True, norm_first=True
            )
            for _ in range(c.depth)
        )
        self.blocks, self.norm = nn.Sequential(*layers), nn.LayerNorm(c.dim)
        self.head = nn.Linear(c.dim, c.classes)

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.patches(images).flatten(2).transpose(1, 2) + self.positions
        return self.head(self.norm(self.blocks(tokens)).mean(1))


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


def main(batch: int = 128, rounds: int = 15, threads: int = os.cpu_count() or 1) -> None:
    torch.set_num_threads(threads)
    print(f"training, {threads} threads, batches of {batch}")
    model = minivit.create("vit_32px")
    twins = {"minivit": model, "stock": Stock(model.config)}
    sizes = {side: sum(p.numel() for p in twin.parameters()) for side, twin in twins.items()}
    assert sizes["minivit"] == sizes["stock"], sizes
    steps = {
        (side, precision): step(twin, batch, precision)
        for side, twin in twins.items()
        for precision in ("float32", "bfloat16")
    }
    times = {key: np.array(values) for key, values in interleaved(steps, rounds).items()}
    for (side, precision), values in times.items():
        beside = middle(times["stock", precision] / values)
        in_float32 = np.median(times["stock", "float32"] / values)
        print(
            f"  {side:8}{precision:9}{batch / np.median(values):8.0f} images/s   "
            f"{beside} times stock, {in_float32:.2f} times stock in float32"
        )


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
