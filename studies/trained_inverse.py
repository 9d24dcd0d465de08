"""How near does a network that was trained for it come to images, from the last block's tokens?

The usual way to invert a representation (Dosovitskiy & Brox 2016): a network learns to give the
image whose tokens it reads, by the squared error on pictures of the training part. It is not told
the model's weights. Here ridge regression, the ``linear`` decoder, reads each patch off its token
and the eight around it; the ``network``, two Mixer blocks on whitened tokens, adds what that
misses. (With attention in these blocks, 300 steps had a tenth less error on ``cifar10_vit_gap`` at
twice the cost, and a third more on ``cifar10_mixer``.) Each model gets the same pictures and steps,
and one seed; short trainings choose its rate, by the error on pictures of the validation part.
Measured are the images of ``unwinding_after_a_climb``.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import minivit
from minivit.mixer import MixerBlock, MixerConfig
from minivit.patches import patchify
from studies.runner.survey import Figures, by_row
from studies.shared import inputs
from studies.shared.training import optimise, outputs
from studies.unwinding import OTHERS, PICTURES
from vitlab.calls import activation
from vitlab.inversion import decibels
from vitlab.inversion.learned import RIDGE, around, ridge
from vitlab.krylov import norms

KINDS = ("vit_gap", "vit_cls", "vit_patch", "vit", "mixer", "feedforward", "attention_only")
PLACES = 64  # of patches, 8 x 8
LEARNED_FROM, HELD_OUT = 10_000, 500  # pictures of the training and of the validation part
EVERY = 3  # one in so many of the former is for the regression; they may stand by class
FAINTEST = 1e-6  # of the tokens' largest variance: fainter directions are not enlarged further
BATCH, STEPS, SHORT = 64, 2500, 150  # pictures in a step; steps, and those that choose a rate
RATES = 3e-4, 1e-3, 3e-3, 1e-2, 3e-2
Parts = dict[str, Tensor]  # for each part of the pictures


def whitened(tokens: Parts) -> Parts:
    rows = tokens["train"].flatten(0, 1)
    values, vectors = torch.linalg.eigh(rows.mT.cov().double())
    whiten = vectors / values.clamp(min=FAINTEST * values[-1].item()).sqrt()
    return {part: (some - rows.mean(0)) @ whiten.float() for part, some in tokens.items()}


def network(tokens: Tensor, pixels: int) -> nn.Sequential:
    """From whitened tokens ``[batch, tokens, dim]`` to ``[batch, tokens, pixels]``, at first 0."""
    torch.manual_seed(0)
    dim, pool = tokens.shape[2], "mean" if tokens.shape[1] == PLACES else "class"
    sizes: Any = {"image_size": 32, "patch_size": 4, "mixing_hidden": 2 * PLACES, "pool": pool}
    config = MixerConfig(dim=dim, mlp_ratio=2, **sizes)
    blocks = [MixerBlock(config) for _ in range(2)]
    last = nn.Linear(dim, pixels)
    for weights in last.parameters():
        nn.init.zeros_(weights)
    return nn.Sequential(nn.Linear(dim, dim), *blocks, nn.LayerNorm(dim), last)


def decoded(tokens: Parts, patches: Parts) -> tuple[Parts, Parts, Figures]:
    """Patches ``[batch, places, pixels]`` by the regression and by the network; its training."""

    def read(tokens: Tensor) -> Tensor:
        return around(tokens[:, -PLACES:], 8)

    few, wanted = read(tokens["train"][::EVERY]), patches["train"][::EVERY]
    matrix, constant = ridge(few.flatten(0, 1), wanted.flatten(0, 1), RIDGE)
    linear = {k: outputs(lambda x: read(x) @ matrix + constant, x) for k, x in tokens.items()}
    missing, white = {k: patches[k] - linear[k] for k in tokens}, whitened(tokens)

    def after(steps: int, rate: float) -> tuple[nn.Module, list[float]]:
        """A network, and its validation loss: a tenth of the steps before the end, and there."""
        model, left = network(white["train"], wanted.shape[2]), iter(range(steps)[::-1])
        draws, losses = torch.Generator().manual_seed(0), list[float]()

        def held_out() -> None:
            found = outputs(model, white["validation"])[:, -PLACES:]
            losses.append(F.mse_loss(found, missing["validation"]).item())

        def loss() -> Tensor:
            if next(left) == steps // 10:
                held_out()
            batch = torch.randint(len(patches["train"]), (BATCH,), generator=draws)
            with torch.autocast("cpu", torch.bfloat16):
                found = model(white["train"][batch])[:, -PLACES:]
            return F.mse_loss(found.float(), missing["train"][batch])

        optimise(model, loss, steps, rate, fused=True)
        held_out()
        return model, losses

    scores = {rate: -after(SHORT, rate)[1][-1] for rate in RATES}
    rate = max(scores, key=scores.__getitem__)
    model, losses = after(STEPS, rate)
    both = {k: linear[k] + outputs(model, x)[:, -PLACES:] for k, x in white.items()}
    return linear, both, {"rate": rate, "search": scores, "losses": losses}


def pictures() -> Parts:
    """Those that a decoder learns from, that choose its rate, and on which it is measured."""
    parts = {
        "train": inputs.pictures("CIFAR10", LEARNED_FROM, "train").images,
        "validation": inputs.pictures("CIFAR10", HELD_OUT, "validation").images,
        "built on": inputs.pictures("CIFAR10", PICTURES).images,
        "others": inputs.shuffled("CIFAR10", 1000).images[OTHERS],
    }
    train, validation, *measured = ({x.numpy().tobytes() for x in some} for some in parts.values())
    assert (train | validation).isdisjoint(set.union(*measured)), "no picture measured is known"
    return parts


def trained_inverse(row: str) -> Figures:
    """Each image's dB by both decoders; of the training its losses, of each rate minus its loss."""
    model: Any = minivit.load(row).eval()
    images = {part: model.preprocess(some) for part, some in pictures().items()}
    read = activation(model, f"blocks.{len(model.blocks) - 1}")
    patches = {part: patchify(some, 4) for part, some in images.items()}
    linear, both, figures = decoded({k: outputs(read, x) for k, x in images.items()}, patches)
    for part in ("built on", "others"):
        figures[part] = {
            name: decibels(norms(found[part] - patches[part]), patches[part])
            for name, found in (("linear", linear), ("network", both))
        }
    return {"learned_from": len(images["train"]), "steps": STEPS, **figures}


ROWS = [f"cifar10_{kind}" for kind in KINDS]
STUDY = by_row("trained_inverse", trained_inverse, ROWS, digits=".4g")
