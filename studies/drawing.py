"""Diffusion transformers of digits: how they are told time and label, and what they draw.

``python -m studies.drawing`` publishes the first of those that draw.
"""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Generator, Tensor, nn

import minivit
from minivit.vit import Block
from studies.runner.survey import Figures, Survey, over_seeds, plain
from studies.shared.lengths import after, named
from studies.shared.training import normalised, optimise
from vitlab.data import Split, load_data
from vitlab.dit import NONE, WEIGHTS, DiT, draw, flow_loss, time_features

SEEDS = range(5)
SHORT, LONG, REFLOW = 120, 1000, 400  # steps, of 64 images each
RATE, AGAIN = 1e-2, 3e-3
UNTOLD = 0.1  # of the labels, in training
DRAWN, PAIRS = 300, 2000
STEPS, SCALES = (1, 2, 5, 10, 20), (1, 2, 3, 5)
SMALL = {"dim": 32, "depth": 2}


class InContext(DiT):
    """Time and label are two more tokens of plain ViT blocks, and leave the norms alone."""

    def __init__(self, dim: int, depth: int) -> None:
        super().__init__(dim=dim, depth=depth)
        self.blocks = nn.ModuleList(Block(dim, 4, 2 * dim) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        del self.modulation

    def forward(self, images: Tensor, t: Tensor, labels: Tensor) -> Tensor:
        told = self.time(time_features(t, self.labels.embedding_dim)), self.labels(labels)
        x = torch.cat([torch.stack(told, 1), self.patch_embedding(images) + self.positions], 1)
        for block in self.blocks:
            x = block(x)
        return self.images(self.norm(x[:, 2:]))


MODELS: dict[str, Callable[[], DiT]] = {
    "adaLN-Zero": partial(DiT, **SMALL),
    "in context": partial(InContext, **SMALL),
    "patches of 4": partial(DiT, patch_size=4, **SMALL),
}


def pixels(part: Split) -> Tensor:
    """Images from -1, black, to 1, white."""
    return part.images.float() / 127.5 - 1


@torch.no_grad()
def error(model: nn.Module, part: Split, times: int = 10) -> float:
    """Of velocities, at times and with noise that all models share."""
    random = Generator().manual_seed(0)
    each = [flow_loss(model, pixels(part), part.labels, random) for _ in range(times)]
    return torch.stack(each).mean().item()


def taught(model: nn.Module, steps: int, rate: float, seed: int) -> list[list[float]]:
    """Trains on digits, some without their label; gives steps, loss and test error, ten times."""
    data, random = load_data("DIGITS"), Generator().manual_seed(seed)
    images, labels = pixels(data.train), data.train.labels
    losses: list[float] = []
    curve: list[list[float]] = []

    def loss() -> Tensor:
        batch = torch.randint(len(images), (64,), generator=random)
        told = torch.rand(64, generator=random) >= UNTOLD
        value = flow_loss(model, images[batch], labels[batch].where(told, NONE), random)
        losses.append(value.item())
        if len(losses) % max(steps // 10, 1) == 0:
            recent = losses[-(steps // 10) :]
            curve.append([len(losses), sum(recent) / len(recent), error(model, data.test, 2)])
        return value

    optimise(model, loss, steps, rate, fused=True)
    return curve


def compared(kind: str, steps: int, rate: float, seed: int) -> Figures:
    """Errors of one model, on the validation part with their sign changed: higher is better."""
    torch.manual_seed(seed)
    model, data = MODELS[kind](), load_data("DIGITS")
    curve, held_out = taught(model, steps, rate, seed), -error(model, data.validation)
    both = {"validation": held_out, "likelihood": held_out}
    return plain({"error": error(model, data.test), "curve": curve} | both)


def conditioning(kind: str, times: int) -> Figures:
    """Models of one kind after as many steps, at the best rate and the next."""
    steps, weights = times * SHORT, MODELS[kind]().parameters()
    figures = after(times, partial(compared, kind, steps), SEEDS, "drawing", kind)
    return figures | {"steps": steps, "parameters": sum(p.numel() for p in weights)}


def drawing(seed: int) -> DiT:
    torch.manual_seed(seed)
    model = DiT()
    taught(model, LONG, RATE, seed)
    return model


def drawings(seed: int) -> Figures:
    """What a model draws, by steps and by guidance; and by steps after one reflow."""
    model, random = drawing(seed), Generator().manual_seed(seed + 100)
    labels = torch.arange(DRAWN) % 10
    noise = torch.randn(DRAWN, 1, 8, 8, generator=random)
    each = [said(draw(model, noise, labels, 20, scale), labels) for scale in SCALES]
    figures = {name: [one[name] for one in each] for name in each[0]}
    figures["off"] = off(model, noise, labels)
    figures["off, reflowed"] = off(reflowed(model, random), noise, labels)
    return plain(figures)


@torch.no_grad()
def said(images: Tensor, labels: Tensor) -> Figures:
    """What digits_vit says of drawings, how they vary, how near the nearest digit is."""
    judge: Any = minivit.load("digits_vit")
    train = pixels(load_data("DIGITS").train)
    given = judge(normalised((images.clamp(-1, 1) + 1) / 2, judge.preprocess)).softmax(1)
    return {
        "named": (given.argmax(1) == labels).double().mean(),
        "doubt": 1 - given[torch.arange(len(labels)), labels].mean(),
        "variance": within(images, labels),
        "nearest": torch.cdist(images.flatten(1), train.flatten(1)).amin(1).median(),
    }


def within(images: Tensor, labels: Tensor) -> Tensor:
    """Variance of a pixel among images of one digit, a mean over digits and pixels."""
    return torch.stack([images[labels == k].var(0).mean() for k in labels.unique()]).mean()


def off(model: nn.Module, noise: Tensor, labels: Tensor) -> list[float]:
    """Squared distance of drawings to those of 100 steps, over the variance within a digit."""
    best = draw(model, noise, labels, 100)
    each = [(draw(model, noise, labels, steps) - best).square().mean() for steps in STEPS]
    return (torch.stack(each) / within(best, labels)).tolist()


def reflowed(model: DiT, random: Generator) -> DiT:
    """A copy trained again, on pairs of noise and what the model draws from it."""
    straight, labels = copy.deepcopy(model), torch.randint(NONE, (PAIRS,), generator=random)
    noise = torch.randn(PAIRS, 1, 8, 8, generator=random)
    images = draw(model, noise, labels)

    def loss() -> Tensor:
        batch = torch.randint(PAIRS, (64,), generator=random)
        return flow_loss(straight, images[batch], labels[batch], random, noise[batch])

    optimise(straight, loss, REFLOW, AGAIN, fused=True)
    return straight


STUDY = Survey(
    "drawing",
    {"drawings": lambda: over_seeds(drawings(seed) for seed in SEEDS)}
    | {named(kind, n): partial(conditioning, kind, n) for kind in MODELS for n in (1, 3)},
    SEEDS,
)

if __name__ == "__main__":
    torch.set_num_threads(1)
    state = drawing(SEEDS[0]).state_dict()
    save_file({name: tensor.half().contiguous() for name, tensor in state.items()}, WEIGHTS)
