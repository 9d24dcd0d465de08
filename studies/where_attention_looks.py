"""Where do trained ViTs look, and does it matter to them?

Everything is measured on test images of CIFAR-10. For untrained models, one a seed, and for the
model that was trained longest, whose first layers are convolutions, only the attention distances
are.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import minivit
from minivit.parts import local_mask
from minivit.vit import MultiHeadAttention, ViT
from studies.runner.survey import Survey
from studies.shared import inputs
from studies.shared.training import outputs
from vitlab.claims.measurements.attention import rank_correlation
from vitlab.instruments import (
    Importance,
    attention_distance,
    branch_importance,
    head_importance,
    patch_means,
    rollout,
    saliency,
    token_ablation,
)

PICTURES, FEW = 300, 60  # FEW where every patch is deleted in turn
UNTRAINED = "vit_32px untrained"
TRAINED = ("cifar10_vit_gap", "cifar10_vit_cls", "cifar10_vit_no_residual")
LONGEST = "cifar10_vit"
SEEDS = range(5)


def measure(row: str) -> dict[str, Any]:
    """The distances of one row; for a trained model also what it loses without its parts."""
    # An untrained model takes the preprocessing of a trained one.
    model: Any = inputs.model(TRAINED[0] if row == UNTRAINED else row)
    test = inputs.pictures("CIFAR10", PICTURES)
    images, labels = model.preprocess(test.images), test.labels
    models = untrained(model) if row == UNTRAINED else [model]
    distances = [attention_distance(one, images) for one in models]
    pixels = [distance.pixels.tolist() for distance in distances]
    figures: dict[str, Any] = {"uniform": distances[0].uniform[0].item(), "pixels": pixels}
    if row in (UNTRAINED, LONGEST):
        return figures
    if not row.endswith("no_residual"):  # there nothing passes a branch that is switched off
        figures["branches"] = importance(branch_importance(model, images, labels))
    return figures | {
        "heads": importance(head_importance(model, images, labels)),
        "limited": limited(model, images, labels),
        **agreement(model, images[:: PICTURES // FEW]),  # of all classes, which stand in order
    }


def untrained(like: ViT) -> Iterator[ViT]:
    for seed in SEEDS:
        torch.manual_seed(seed)
        yield ViT(like.config).eval()


def importance(parts: Importance) -> dict[str, Any]:
    return {
        "names": list(parts.names),
        "loss": parts.loss.tolist(),
        "accuracy": parts.accuracy.tolist(),
        "whole": [parts.whole_loss, parts.whole_accuracy],
    }


def limited(model: ViT, images: Tensor, labels: Tensor) -> dict[str, list[list[float]]]:
    """Loss and accuracy where one block's attention is limited, ``[blocks, 2]`` for each limit.

    ``near``: to the 3 x 3 patches around the query. ``far``: to all others. ``even``: uniform.
    A class token attends to all, and all may attend to it.
    """
    extra = int(model.class_token is not None)
    near = local_mask(model.config.grid, 3, bool(extra))
    far = ~near
    far[:extra] = far[:, :extra] = True
    limits: dict[str, Callable[[Any], AbstractContextManager[None]]] = {
        "near": partial(masked, mask=near),
        "far": partial(masked, mask=far),
        "even": even,
    }
    return {
        name: [scores(model, images, labels, limit(block.attention)) for block in model.blocks]
        for name, limit in limits.items()
    }


@contextmanager
def masked(attention: nn.Module, mask: Tensor) -> Iterator[None]:
    """Masks an attention with ``[tokens, tokens]``."""
    with attention.register_forward_pre_hook(lambda module, args: (args[0], mask)):
        yield


@contextmanager
def even(attention: MultiHeadAttention) -> Iterator[None]:

    def no_queries(module: nn.Module, args: Any, output: Tensor) -> Tensor:
        return output.index_fill(-1, torch.arange(attention.out.in_features), 0)

    with attention.qkv.register_forward_hook(no_queries):
        yield


def scores(
    model: ViT, images: Tensor, labels: Tensor, limit: AbstractContextManager[None]
) -> list[float]:
    with limit:
        logits = outputs(model, images).double()
    right = (logits.argmax(1) == labels).double().mean()
    return [F.cross_entropy(logits, labels).item(), right.item()]


def agreement(model: ViT, images: Tensor) -> dict[str, Any]:
    """Rank correlation of maps over the patches with the effect of deleting each patch.

    The effect is how much the logit falls; how much it changes; and how much that of another image
    changes, which shows what maps have in common whatever the image. ``gain_by_identity`` is, for
    each image, how much adding the identity improves the correlation of rollout with the change.
    """
    falls = token_ablation(model, images)  # [n, patches]
    targets = falls, falls.abs(), falls.abs().roll(1, 0)
    maps = {"gradient": patch_means(saliency(model, images), model.config.grid)}
    for identity in (0.0, 0.5):
        maps[f"rollout {identity}"] = rollout(model, images, identity=identity).patches[-1]
    last = f"blocks.{len(model.blocks) - 1}.attention.weights"
    with minivit.record(model, last) as activations, torch.no_grad():
        model(images)
    read = activations[last].mean(1)  # [n, tokens, tokens]
    extra = int(model.class_token is not None)
    maps["last block"] = (read[:, 0] if extra else read.mean(1))[:, extra:]
    by_picture = {
        name: [rank_correlation(m, target) for target in targets] for name, m in maps.items()
    }
    gain = by_picture["rollout 0.5"][1] - by_picture["rollout 0.0"][1]
    return {
        "agreement": {name: [r.mean().item() for r in row] for name, row in by_picture.items()},
        "gain_by_identity": gain.tolist(),
    }


STUDY = Survey("where_attention_looks", [*TRAINED, LONGEST, UNTRAINED], measure, SEEDS)
