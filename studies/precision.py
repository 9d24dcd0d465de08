"""How many digits of its last tokens does an image need?

Tokens after the last block are rounded to fewer and fewer digits. To first order the image of
least squares then moves by ``J^+`` of what was rounded off, where ``J`` is the Jacobian there; from
it, steps with the same ``J^+`` go on to the image whose tokens are nearest. Both begin at the
image: they say what rounded tokens hold, not what a search finds. Of the large ViT it is the patch
embedding's tokens, since none of its blocks is undone.
"""

import math
from typing import Any

import torch
from torch import Tensor

from minivit.patches import patchify
from studies.runner.survey import Figures, by_row
from studies.unwinding import TRAINED, model_and_images
from vitlab.calls import activation
from vitlab.convert.dinov2 import NAME, dinov2_small_saliency
from vitlab.data.photographs import photograph
from vitlab.inversion import EmbeddingInverse, decibels
from vitlab.inversion.solvers import rank_of
from vitlab.krylov import jacobian

IMAGES = 3
PHOTOGRAPHS = ("astronaut", "chelsea", "coffee")
KINDS = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
STEPS = 30


def rounded(tokens: Tensor) -> dict[str, Tensor]:
    """The tokens in fewer digits: of 8-bit integers the largest token is the 127th."""
    scale = tokens.abs().max() / 127
    found = {name: tokens.to(kind).to(tokens) for name, kind in KINDS.items()}
    return found | {"int8": (tokens / scale).round() * scale}


def precision(row: str) -> Figures:
    """Of each image: dB by precision, and how faintly the tokens hold it."""
    if row == NAME:
        return embedding()
    model, images = model_and_images(row)
    model, images = model.double(), images[:: -(-len(images) // IMAGES)].double()
    function = activation(model, f"blocks.{len(model.blocks) - 1}")
    figures: Figures = {"hidden": [], "smallest": [], "linear": {}, "nearest": {}}
    for image in images.split(1):
        with torch.no_grad():
            tokens = function(image)
        j = jacobian(function, image)[0]  # [numbers of the tokens, pixels]
        u, values, vt = torch.linalg.svd(j, full_matrices=False)
        rank = rank_of(values, j.shape)
        u, values, vt = u[:, :rank], values[:rank], vt[:rank]
        figures["hidden"].append(j.shape[1] - rank)
        figures["smallest"].append((values[-1] / values[0]).item())
        for name, given in rounded(tokens).items():
            moved = torch.zeros_like(image)
            for step in range(STEPS):
                with torch.no_grad():
                    missing = given - function(image + moved)
                change = ((u.mT @ missing.flatten()) / values @ vt).view_as(image)
                moved = moved + change
                if step == 0:
                    note(figures["linear"], name, moved, image)
                if change.norm() < 1e-3 * moved.norm():
                    note(figures["nearest"], name, moved, image)
                    break
            else:  # the image is too far for this Jacobian
                figures["nearest"].setdefault(name, []).append(None)
    return figures


def embedding() -> Figures:
    """dB of the part of photographs that the large ViT's embedding keeps, by precision."""
    model: Any = dinov2_small_saliency().double()
    inverse = EmbeddingInverse(model.patch_embedding)
    figures: Figures = {"linear": {}}
    for name in PHOTOGRAPHS:
        image = model.preprocess(photograph(name)[None]).double()
        with torch.no_grad():
            tokens = model.patch_embedding(image)
        kept = inverse.patches(tokens)
        patches = patchify(image, model.config.patch_size)
        for kind, given in rounded(tokens).items():
            note(figures["linear"], kind, inverse.patches(given) - kept, patches)
    return figures


def note(figures: Figures, name: str, moved: Tensor, image: Tensor) -> None:
    """Adds the dB of an image that has moved by this."""
    number = decibels(moved.norm()[None], image).item()
    figures.setdefault(name, []).append(number if math.isfinite(number) else None)


STUDY = by_row("precision", precision, (*TRAINED, "cifar10_vit_patch", NAME), digits=".4g")
