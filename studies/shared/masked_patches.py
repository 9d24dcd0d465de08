"""A small ViT of digits that learns without labels to fill in patches that were masked.

After He et al. (2022), "Masked Autoencoders Are Scalable Vision Learners", in miniature and
simpler: masked patches stay in the sequence as one learned token, as in Xie et al. (2022), and a
linear map on each token predicts its pixels. The loss is over masked patches alone.
"""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

import minivit
from minivit.vit import ViT
from studies.runner.survey import Figures
from vitlab.data import load_data
from vitlab.instruments.probes import probe

PATCHES, MASKED, PIXELS = 16, 10, 4
LABELS = (2, 5, 20)  # of each class
DRAWS = 20  # of those labels


class Filling(nn.Module):
    """An encoder, the token that stands for a masked patch, and a map back to pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = minivit.create("vit_8px", dim=48, depth=3, heads=4)
        self.blank = nn.Parameter(torch.zeros(48))
        self.pixels = nn.Linear(48, PIXELS)

    def tokens(self, images: Tensor, masked: Tensor | None = None) -> Tensor:
        """Tokens after the blocks, normalised; ``masked`` is boolean, ``[batch, patches]``."""
        encoder = self.encoder
        assert isinstance(encoder, ViT)
        x = encoder.patch_embedding(images)
        if masked is not None:
            x = torch.where(masked[..., None], self.blank, x)
        x = encoder.positions(x, encoder.config.grid)
        for block in encoder.blocks:
            x = block(x)
        return encoder.norm(x)

    def forward(self, images: Tensor, masked: Tensor) -> Tensor:
        return self.pixels(self.tokens(images, masked))


def patches(images: Tensor) -> Tensor:
    """``[batch, 1, 8, 8]`` to ``[batch, 16, 4]``."""
    return F.unfold(images, 2, stride=2).mT


def some(count: int, generator: Generator) -> Tensor:
    """A random mask for each image."""
    return torch.rand(count, PATCHES, generator=generator).argsort(1) < MASKED


def filled(images: Tensor, seed: int, steps: int) -> Filling:
    """A model trained to fill in."""
    torch.manual_seed(seed)
    model, generator = Filling(), Generator().manual_seed(seed + 1000)
    optimiser = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, 3e-3, total_steps=max(steps, 4), pct_start=0.1
    )
    for _ in range(steps):
        batch = images[torch.randint(len(images), (64,), generator=generator)]
        masked = some(64, generator)
        loss = F.mse_loss(model(batch, masked)[masked], patches(batch)[masked])
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    return model.eval()


def masked_patches(seed: int, rehearsal: bool) -> Figures:
    """Error of the filling, and accuracy of linear probes with few labels."""
    data = load_data("DIGITS")
    train, test = (
        part.images.float() / data.train.images.max() for part in (data.train, data.test)
    )
    model = filled(train, seed, 2 if rehearsal else 1000)
    torch.manual_seed(seed)
    fresh = Filling().eval()
    masked = some(len(test), Generator().manual_seed(seed))
    truth = patches(test)[masked]
    mean = patches(train).mean(0).expand(len(test), -1, -1)[masked]
    with torch.no_grad():
        found: Figures = {
            "error": F.mse_loss(model(test, masked)[masked], truth).item(),
            "error_of_mean": F.mse_loss(mean, truth).item(),
        }
        seen = {
            "pretrained": [model.tokens(x).mean(1) for x in (train, test)],
            "random": [fresh.tokens(x).mean(1) for x in (train, test)],
            "pixels": [x.flatten(1) for x in (train, test)],
        }
    for name, (x, y) in seen.items():
        found[name] = [
            sum(few(x, data.train.labels, y, data.test.labels, labels, d) for d in range(DRAWS))
            / DRAWS
            for labels in LABELS
        ]
    return found


def few(x: Tensor, labels: Tensor, y: Tensor, truth: Tensor, each: int, draw: int) -> float:
    """Accuracy of a linear classifier that has seen so many images of each class."""
    order = torch.randperm(len(x), generator=Generator().manual_seed(draw))
    chosen = torch.cat([order[labels[order] == digit][:each] for digit in range(10)])
    return probe((x[chosen], labels[chosen]), (y, truth)).accuracy
