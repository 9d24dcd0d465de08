"""A small ViT of digits that learns without labels to fill in patches that were masked.

After He et al. (2022), but masked patches stay in the sequence as one learned token, as in Xie et
al. (2022). Only masked ones enter the loss.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

import minivit
from minivit.patches import patchify
from studies.runner.survey import Figures
from studies.shared.training import optimise
from vitlab.data import load_data
from vitlab.instruments.probes import probe

PATCHES, MASKED, PIXELS = 16, 10, 4
STEPS = 1000
LABELS = (2, 5, 20)  # of each class
DRAWS = 20  # of those labels


class Filling(nn.Module):
    """An encoder, the token that stands for a masked patch, and a map back to pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder: Any = minivit.create("vit_8px", dim=48, depth=3, heads=4)
        self.blank = nn.Parameter(torch.zeros(48))
        self.pixels = nn.Linear(48, PIXELS)

    def tokens(self, images: Tensor, masked: Tensor | None = None) -> Tensor:
        """Tokens after the blocks, normalised; ``masked`` is boolean, ``[batch, patches]``."""
        x = self.encoder.patch_embedding(images)
        if masked is not None:
            x = torch.where(masked[..., None], self.blank, x)
        x = self.encoder.positions(x, self.encoder.config.grid)
        for block in self.encoder.blocks:
            x = block(x)
        return self.encoder.norm(x)

    def forward(self, images: Tensor, masked: Tensor) -> Tensor:
        return self.pixels(self.tokens(images, masked))


def random_masks(count: int, generator: Generator) -> Tensor:
    return torch.rand(count, PATCHES, generator=generator).argsort(1) < MASKED


def pretrained(images: Tensor, seed: int) -> Filling:
    torch.manual_seed(seed)
    model, generator = Filling(), Generator().manual_seed(seed + 1000)

    def loss() -> Tensor:
        batch = images[torch.randint(len(images), (64,), generator=generator)]
        masked = random_masks(64, generator)
        return F.mse_loss(model(batch, masked)[masked], patchify(batch, 2)[masked])

    optimise(model, loss, STEPS, 3e-3)
    return model


def masked_patches(seed: int) -> Figures:
    """Error of the filling, and accuracy of linear probes with few labels."""
    data = load_data("DIGITS")
    white = data.train.images.max()
    train, test = (part.images.float() / white for part in (data.train, data.test))
    model = pretrained(train, seed)
    torch.manual_seed(seed)
    fresh = Filling().eval()
    masked = random_masks(len(test), Generator().manual_seed(seed))
    truth = patchify(test, 2)[masked]
    mean = patchify(train, 2).mean(0).expand(len(test), -1, -1)[masked]
    with torch.no_grad():
        guess = model(test, masked)[masked]
        features = {
            "pretrained": [model.tokens(x).mean(1) for x in (train, test)],
            "random": [fresh.tokens(x).mean(1) for x in (train, test)],
            "pixels": [x.flatten(1) for x in (train, test)],
        }

    def few_labels(x: Tensor, y: Tensor, count: int, draw: int) -> float:
        order = torch.randperm(len(x), generator=Generator().manual_seed(draw))
        labels = data.train.labels
        chosen = torch.cat([order[labels[order] == digit][:count] for digit in range(10)])
        return probe((x[chosen], labels[chosen]), (y, data.test.labels)).accuracy

    errors = {"error": F.mse_loss(guess, truth), "error_of_mean": F.mse_loss(mean, truth)}
    return errors | {
        name: [
            sum(few_labels(x, y, count, draw) for draw in range(DRAWS)) / DRAWS for count in LABELS
        ]
        for name, (x, y) in features.items()
    }
