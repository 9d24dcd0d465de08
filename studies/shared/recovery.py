"""How much of an image an optimiser recovers from the tokens after a block."""

import torch
from torch import Tensor, nn

import minivit
from minivit.mixer import Mixer
from minivit.model import Model
from minivit.patches import patchify
from minivit.vit import ViT
from vitlab.inversion import Diverged, decibels, invert


def without(model: Model, parts: str) -> Model:
    """A copy without a kind of part, or several: ``"residual attention"``."""
    for part in parts.split():
        model = minivit.remove(model, part)
    return model


def recovered(model: Model, images: Tensor, depth: int, optimizer: str, steps: int) -> Tensor:
    """The images found after a block, counted from 1; the start, where the optimiser diverged."""
    at = f"blocks.{depth - 1}"
    try:
        return invert(model, images, at=at, optimizer=optimizer, steps=steps).image
    except Diverged:
        return start(images)


def start(images: Tensor) -> Tensor:
    """Where every inversion of these images starts."""
    return invert(nn.Identity().eval(), images, optimizer="gd", steps=1, step_size=1e-9).image


def psnr(guesses: Tensor, images: Tensor) -> float:
    """The mean over images, in dB."""
    return round(decibels((guesses - images).flatten(1).norm(dim=1), images).mean().item(), 2)


def psnr_of_each(guesses: Tensor, images: Tensor) -> list[float]:
    return [psnr(*pair) for pair in zip(guesses.split(1), images.split(1), strict=True)]


def highlight(model: ViT | Mixer, images: Tensor, guesses: Tensor) -> list[float]:
    """Whether contrast is raised in the patches that decide: of every image, the correlation of log
    contrast relative to the image's with the log slope of the largest logit by the patch."""
    x = images.clone().requires_grad_()
    (slope,) = torch.autograd.grad(model(x).amax(1).sum(), x)
    size, least = model.config.patch_size, 0.02  # a flat patch has no contrast to raise

    def contrast(images: Tensor) -> Tensor:  # [n, patches]
        patches = patchify(images, size).unflatten(-1, (images.shape[1], -1))
        return patches.std(-1, correction=0).square().mean(-1).sqrt()

    raised = ((contrast(guesses) + least) / (contrast(images) + least)).log()
    saliency = patchify(slope, size).norm(dim=-1).log()
    both = torch.stack([raised, saliency], 1)  # [n, 2, patches]
    return [round(torch.corrcoef(pair)[0, 1].item(), 3) for pair in both]
