"""What optimisers bring back of photographs, in float32, from the source's start.

``inversion_in_miniature``: the source's inversions of an untrained ViT whose patches have four
times as many numbers as its tokens, as in ViT-B/32, behind an embedding that keeps most of an
image. ``inversion_rates``: the source's descent, with a Gaussian after each step, by learning rate.
``inversion_by_depth``: three blocks of trained and untrained models, two photographs.
``inversion_at_the_criterion``: how far twelve digits are when they meet it, in float64.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

import minivit
from minivit.patches import patchify
from minivit.vit import ViT
from studies.runner.survey import Figures, Survey, by_row
from vitlab.calls import activation
from vitlab.data import load_data
from vitlab.data.photographs import crops, photograph
from vitlab.inversion import Diverged, invert, linear_guess

FLOAT32 = 100.0  # dB, beyond which rounding decides
FEW, TIMES = 20, 70  # the source compares 1,500 steps with 105,000, 70 times as many
LONG = 200  # steps of L-BFGS that are enough in miniature
RATES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
RATE_STEPS, BLUR = 100, 2.4
MODELS = ("cifar10_vit_gap", "vit_32px untrained", "cifar10_resnet", "resnet_32px untrained")
DEPTH_STEPS = 120
KINDS = ("digits_mixer", "mixer_8px untrained", "digits_resnet", "resnet_8px untrained")


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


def errors(way: Any) -> Figures:
    """Errors of features and pixels for each image, down to the rounding of float32."""
    least = way.feature_distance.nan_to_num(torch.inf).amin(1)
    ratio = (least / way.threshold).tolist()
    return {
        "psnr": [round(min(value, FLOAT32), 2) for value in way.psnr.tolist()],
        "ratio": [round(float(f"{value:.4g}"), 4) for value in ratio],
    }


def in_miniature(seed: int) -> Figures:
    """Gradient descent with few steps and with many, and L-BFGS, by depth."""
    image, vit = astronaut(), with_fitted_embedding(miniature(seed))

    def back(at: str, optimizer: str, steps: int) -> Figures:
        return errors(invert(vit, image, at=at, optimizer=optimizer, steps=steps))

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


def by_rate(seed: int) -> Figures:
    """What each learning rate leaves; none where it diverges."""
    torch.manual_seed(seed)
    models = {"resnet": minivit.create("resnet_32px").eval(), "vit": miniature(seed)}
    descend = partial(invert, image=astronaut(), optimizer="gd", blur=BLUR, steps=RATE_STEPS)

    def leaves(model: nn.Module, at: str, rate: float) -> Figures | None:
        try:
            return errors(descend(model, at=at, step_size=rate))
        except Diverged:
            return None

    return {
        name: {
            at: {str(rate): leaves(model, at, rate) for rate in RATES}
            for at in ("blocks.0", "blocks.5")
        }
        for name, model in models.items()
    }


def by_depth(row: str) -> Figures:
    """Every optimiser at each block; the untrained models are of the trained ones' sizes."""
    name, _, untrained = row.partition(" ")
    torch.manual_seed(0)
    changes = {"width": 32} if name == "resnet_32px" else {}
    model = minivit.create(name, **changes) if untrained else minivit.load(name)
    model = model.eval()
    preprocess = minivit.load(MODELS[0]).preprocess
    images = preprocess(torch.stack([photograph(name, 32) for name in ("astronaut", "chelsea")]))
    figures: Figures = {}
    for at in ("blocks.0", "blocks.2", "blocks.5"):
        starts: dict[str, Tensor | None] = {"gd": None, "adam": None, "lbfgs": None}
        if isinstance(model, ViT):
            with torch.no_grad():
                guess = linear_guess(model, at, activation(model, at)(images))
            starts["lbfgs, first guess"] = guess
        figures[at] = {}
        for name, start in starts.items():
            how: dict[str, Any] = {"optimizer": name.split(",")[0], "steps": DEPTH_STEPS}
            figures[at][name] = errors(invert(model, images, at=at, start=start, **how))
    return figures


def at_the_criterion(row: str) -> Figures:
    """Distances from twelve digits, after the first and the last block; none where not met."""
    name, _, untrained = row.partition(" ")
    torch.manual_seed(0)
    model: Any = (minivit.create(name) if untrained else minivit.load(name)).eval().double()
    preprocess = minivit.load("digits_vit").double().preprocess
    dozen = preprocess(load_data("DIGITS").test.images[:12]).double()
    away: list[float | None] = []
    for at in ("blocks.0", f"blocks.{len(model.blocks) - 1}"):
        run: Any = invert(model, dozen, at=at, steps=LONG)
        met = enumerate(run.met)
        away += [run.input_distance[i, count - 1].item() if count else None for i, count in met]
    return {"away": away}


def by_seed(name: str, measure: Callable[[int], Figures], seeds: int) -> Survey:
    rows = {f"seed {seed}": partial(measure, seed) for seed in range(seeds)}
    return Survey(name, rows, range(seeds), digits="")


inversion_in_miniature = by_seed("inversion_in_miniature", in_miniature, 5)
inversion_rates = by_seed("inversion_rates", by_rate, 10)
inversion_by_depth = by_row("inversion_by_depth", by_depth, MODELS, digits="")
inversion_at_the_criterion = by_row(
    "inversion_at_the_criterion", at_the_criterion, KINDS, digits=""
)
