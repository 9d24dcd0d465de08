"""Do the source's inversions work in miniature, on a photograph?

An untrained ViT whose patches have four times as many numbers as its tokens, as in ViT-B/32, behind
an embedding that keeps most of an image; five seeds, in float32, from the source's start.
"""

from typing import Any

import torch
from torch import Tensor

import minivit
from minivit.patches import patchify
from studies.runner.survey import Survey
from vitlab.data.photographs import crops, photograph
from vitlab.inversion import Inversion, invert

SEEDS = tuple(range(5))
FLOAT32 = 100.0  # dB, beyond which rounding decides
FEW, TIMES = 20, 70  # the source compares 1,500 steps with 105,000, 70 times as many
LONG = 200  # steps of L-BFGS that are enough here


def astronaut() -> Tensor:
    """The photograph, ``[1, 3, 32, 32]``, of mean 0 and standard deviation 1, roughly."""
    return (photograph("astronaut", 32)[None] / 255 - 0.5) / 0.25


def miniature(seed: int) -> Any:
    """ViT-B/32 in small: 16 patches of 192 numbers, tokens of 48, a class token, 6 blocks."""
    torch.manual_seed(seed)
    return minivit.create("vit_32px", patch_size=8, dim=48, pool="class").eval()


@torch.no_grad()
def with_fitted_embedding(model: Any) -> Any:
    """Gives it the 48 filters that keep most of photographs: their principal components."""
    patches = patchify((crops(500)[0] / 255 - 0.5) / 0.25, 8).flatten(0, 1)  # [8000, 192]
    filters = torch.linalg.eigh(patches.mT.cov()).eigenvectors[:, -48:].mT  # [48, 192]
    weight = model.patch_embedding.projection.weight
    weight.copy_(filters.view_as(weight))
    return model


def brought_back(result: Inversion) -> dict[str, Any]:
    """Errors of features and pixels for each image, down to the rounding of float32."""
    assert result.psnr is not None and result.threshold is not None  # for mypy
    least = result.feature_distance.nan_to_num(torch.inf).amin(1)
    ratio = (least / result.threshold).tolist()
    return {
        "psnr": [round(min(value, FLOAT32), 2) for value in result.psnr.tolist()],
        "ratio": [round(float(f"{value:.4g}"), 4) for value in ratio],
        "met": result.met,
    }


def measure(row: str) -> dict[str, Any]:
    """Gradient descent with few steps and with many, and L-BFGS, by depth."""
    image = astronaut()
    vit = with_fitted_embedding(miniature(int(row.removeprefix("seed "))))

    def back(at: str, optimizer: str, steps: int) -> dict[str, Any]:
        return brought_back(invert(vit, image, at=at, optimizer=optimizer, steps=steps))

    places = ["positions", *(f"blocks.{i}" for i in (0, 1, 3, 5))]
    return {
        "descent": {
            "few": back("blocks.0", "gd", FEW),
            "few, last": back("blocks.5", "gd", FEW),
            "many, last": back("blocks.5", "gd", TIMES * FEW),
        },
        "embedding_and_blocks": {
            method: {at: back(at, method, steps) for at in places}
            for method, steps in (("gd", FEW), ("lbfgs", LONG))
        },
    }


STUDY = Survey("inversion_in_miniature", [f"seed {s}" for s in SEEDS], measure, SEEDS)
