"""Are models whose input is found slowly slow to train?

Every architecture for digits is inverted untrained, by gradient descent at its last block, where
condition numbers are computed too; then it is trained for a few steps.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.swa_utils import update_bn

import minivit
from minivit.model import Model
from studies.runner.survey import Figures, by_row, over_seeds
from studies.shared.inputs import digits
from studies.shared.recovery import without
from vitlab.calls import activation
from vitlab.inversion import Diverged, invert
from vitlab.krylov import jacobian

VIT: dict[str, Any] = {"dim": 32, "depth": 3, "heads": 4}
MIXER: dict[str, Any] = {"dim": 32, "depth": 3}
RESNET: dict[str, Any] = {"width": 8}
# Of each: name, changes, and what is removed.
ARCHITECTURES: dict[str, tuple[str, dict[str, Any], str]] = {
    "ViT": ("vit_8px", VIT, ""),
    "ViT, 1 block": ("vit_8px", VIT | {"depth": 1}, ""),
    "ViT, 6 blocks": ("vit_8px", VIT | {"depth": 6}, ""),
    "ViT, half as wide": ("vit_8px", VIT | {"dim": 16}, ""),
    "ViT, patches of 4": ("vit_8px", VIT | {"patch_size": 4}, ""),
    "ViT, norm behind": ("vit_8px", VIT | {"norm": "post"}, ""),
    "ViT, no norm": ("vit_8px", VIT, "norm"),
    "ViT, no residual": ("vit_8px", VIT, "residual"),
    "ViT, no positions": ("vit_8px", VIT, "positions"),
    "ViT, no attention": ("vit_8px", VIT, "attention"),
    "ViT, no MLP": ("vit_8px", VIT, "mlp"),
    "Mixer": ("mixer_8px", MIXER, ""),
    "Mixer, no norm": ("mixer_8px", MIXER, "norm"),
    "Mixer, no residual": ("mixer_8px", MIXER, "residual"),
    "Feed-forward": ("feedforward_8px", MIXER, ""),
    "ResNet": ("resnet_8px", RESNET, ""),
    "ResNet, no residual": ("resnet_8px", RESNET | {"residual": False}, ""),
}
SEEDS = range(5)
BUDGET = 200  # evaluations of an inversion
STEPS = 50  # of a training, of 32 images each
RATES = 3e-3, 1e-2  # AdamW's; of these the better one counts
PICTURES = 4  # inverted, of the test part


def untrained(name: str, seed: int) -> Model:
    """An architecture as it is before the first step, in evaluation mode."""
    torch.manual_seed(seed)
    base, changes, removed = ARCHITECTURES[name]
    model = without(minivit.create(base, **changes), removed)
    update_bn([digits("train")[0][:256]], model)  # there are no statistics before training
    return model.eval()


def loss_after(model: Model, rate: float, seed: int) -> float:
    """The cross-entropy on all training images after some steps of AdamW."""
    images, labels = digits("train")
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=0.05)
    model.train()
    for _ in range(STEPS):
        batch = torch.randint(len(images), (32,), generator=generator)
        loss = F.cross_entropy(model(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        return F.cross_entropy(model.eval()(images), labels).item()


class Tokens(nn.Module):
    """A model up to its last block."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model, self.block = model, f"blocks.{len(model.blocks) - 1}"

    def forward(self, images: Tensor) -> Tensor:
        return activation(self.model, self.block)(images)


def inverted(model: Model) -> dict[str, float]:
    """Means over images of gradient descent from the last block: dB at the end; log10 of how many
    evaluations until the tokens were nearer than those of a perturbed image, ``BUDGET`` at most."""
    images = digits("test")[0][:PICTURES]
    try:
        way: Any = invert(model, images, at=Tokens(model).block, optimizer="gd", steps=BUDGET)
    except Diverged:
        return {"evaluations": torch.tensor(BUDGET).log10().item(), "decibels": 0.0}
    met = torch.tensor([min(count or BUDGET, BUDGET) for count in way.met])
    return {"evaluations": met.log10().mean().item(), "decibels": way.psnr.mean().item()}


def conditions(model: Model) -> dict[str, float]:
    """Base-10 logarithms of condition numbers of the last block's tokens: by the pixels of one
    image, mean over images; by the first layer's weights, for all images."""
    model = model.double()
    images = digits("test")[0][:PICTURES].double()
    by_input = torch.linalg.svdvals(jacobian(Tokens(model), images))  # [batch, 64]
    name, first = next((n, p) for n, p in model.named_parameters() if p.ndim == 4)

    def tokens(weight: Tensor) -> Tensor:  # [1, weights] -> [1, batch * tokens * dim]
        weights = {f"model.{name}": weight.view_as(first)}
        return torch.func.functional_call(Tokens(model), weights, images).reshape(1, -1)

    by_first = torch.linalg.svdvals(jacobian(tokens, first.detach().view(1, -1))[0])
    tiny = torch.finfo(torch.float64).eps
    return {
        key: -(s[:, -1] / s[:, 0]).clamp(min=tiny).log10().mean().item()
        for key, s in {"by_input": by_input, "by_first": by_first[None]}.items()
    }


def measure(name: str) -> Figures:
    """Figures of an architecture: a list with a number for each seed, or two lists, by rate."""
    losses = {
        str(rate): [loss_after(untrained(name, seed), rate, seed) for seed in SEEDS]
        for rate in RATES
    }
    figures = over_seeds(
        inverted(untrained(name, seed)) | conditions(untrained(name, seed)) for seed in SEEDS
    )
    parameters = sum(p.numel() for p in untrained(name, 0).parameters())
    best = min(losses.values(), key=sum)
    return {"parameters": parameters} | figures | {"losses": losses, "loss": best}


STUDY = by_row("inversion_and_training", measure, ARCHITECTURES, seeds=SEEDS, digits="")
