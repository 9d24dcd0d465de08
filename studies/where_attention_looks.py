"""Where do trained ViTs look, and does it matter to them?

On test images of CIFAR-10. What a model loses without its parts is asked of one; of untrained
models, one a seed, and of the model that was trained longest, whose first layers are convolutions,
only the attention distances.
"""

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.hooks import RemovableHandle

import minivit
from minivit.parts import local_mask
from minivit.vit import ViT
from studies.runner.survey import Figures, by_row
from studies.shared import inputs
from studies.shared.training import outputs
from vitlab import instruments
from vitlab.claims.measurements.attention import rank_correlation

PICTURES, FEW = 300, 60  # FEW where every patch is deleted in turn
UNTRAINED = "vit_32px untrained"
TRAINED = ("cifar10_vit_gap", "cifar10_vit_cls", "cifar10_vit_no_residual")
LONGEST = "cifar10_vit"
SEEDS = range(5)


def measure(row: str) -> Figures:
    """The distances of one row; of trained models also maps; of the first, its parts."""
    # An untrained model takes the preprocessing of a trained one.
    model: Any = minivit.load(TRAINED[0] if row == UNTRAINED else row)
    test = inputs.pictures("CIFAR10", PICTURES)
    images, labels = model.preprocess(test.images), test.labels
    models = untrained(model) if row == UNTRAINED else [model]
    distances = [instruments.attention_distance(m, images) for m in models]
    pixels = [distance.pixels.tolist() for distance in distances]
    figures: Figures = {"uniform": distances[0].uniform[0].item(), "pixels": pixels}
    if row in (UNTRAINED, LONGEST):
        return figures
    if row == TRAINED[0]:
        branches = instruments.branch_importance(model, images, labels)
        figures |= {
            "branches": {
                "accuracy": branches.accuracy,
                "whole": [branches.whole_loss, branches.whole_accuracy],
            },
            "heads": {"loss": instruments.head_importance(model, images, labels).loss},
            "limited": limited(model, images, labels),
        }
    # Of all classes, which stand in order.
    return figures | agreement(model, images[:: PICTURES // FEW])


def untrained(like: ViT) -> Iterator[ViT]:
    for seed in SEEDS:
        torch.manual_seed(seed)
        yield ViT(like.config).eval()


def limited(model: Any, images: Tensor, labels: Tensor) -> dict[str, list[list[float]]]:
    """Loss and accuracy where one block's attention is limited, ``[blocks, 2]`` for each limit.

    ``near``: to the 3 x 3 patches around the query, ``far``: to all others, ``even``: as queries
    are zero.
    """
    near = local_mask(model.config.grid, 3)

    def limit(kind: str, attention: Any) -> RemovableHandle:
        if kind == "even":
            queries = torch.arange(model.config.dim)
            return attention.qkv.register_forward_hook(lambda _, x, y: y.index_fill(-1, queries, 0))
        mask = near if kind == "near" else ~near
        return attention.register_forward_pre_hook(lambda _, x: (x[0], mask))

    figures: dict[str, list[list[float]]] = {"near": [], "far": [], "even": []}
    for kind, scores in figures.items():
        for block in model.blocks:
            with limit(kind, block.attention):
                logits = outputs(model, images).double()
            right = (logits.argmax(1) == labels).double().mean()
            scores.append([F.cross_entropy(logits, labels).item(), right.item()])
    return figures


def agreement(model: Any, images: Tensor) -> Figures:
    """Rank correlation of maps over the patches with the effect of deleting each patch.

    The effect: how much the logit falls; changes; and changes of another image, which shows what
    maps have in common whatever the image. ``gain_by_identity``: of rollout with the change.
    """
    falls = instruments.token_ablation(model, images)  # [n, patches]
    targets = falls, falls.abs(), falls.abs().roll(1, 0)
    slopes = instruments.saliency(model, images)
    maps = {"gradient": instruments.patch_means(slopes, model.config.grid)}
    for identity in (0.0, 0.5):
        carried = instruments.rollout(model, images, identity=identity)
        maps[f"rollout {identity}"] = carried.patches[-1]
    last = f"blocks.{len(model.blocks) - 1}.attention.weights"
    with minivit.record(model, last) as activations, torch.no_grad():
        model(images)
    read = activations[last].mean(1)  # [n, tokens, tokens]
    extra = int(model.class_token is not None)
    maps["last block"] = (read[:, 0] if extra else read.mean(1))[:, extra:]
    by_image = {
        name: [rank_correlation(m, target) for target in targets] for name, m in maps.items()
    }
    gain = by_image["rollout 0.5"][1] - by_image["rollout 0.0"][1]
    return {
        "agreement": {name: [r.mean().item() for r in row] for name, row in by_image.items()},
        "gain_by_identity": gain.tolist(),
    }


ROWS = (*TRAINED, LONGEST, UNTRAINED)
STUDY = by_row("where_attention_looks", measure, ROWS, seeds=SEEDS, digits="")
