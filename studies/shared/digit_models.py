"""Small models of digits, trained side by side from several seeds, and how alike they become."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from torch import Tensor

import minivit
from minivit.model import Model
from studies.shared.lengths import scored
from studies.shared.training import fitted
from vitlab.data import Data, Split, load_data
from vitlab.instruments import Localisation, cka, localisation, probes, readable
from vitlab.training import Recipe

SEEDS = range(8)
SMALL = {"depth": 6, "dim": 32, "heads": 2}
PIT = {"image_size": 8, "channels": 1, "patch_size": 1, "widths": (16, 32, 64), "heads": (1, 2, 4)}
MODELS: dict[str, tuple[str, dict[str, Any], int]] = {  # six blocks each; steps of training
    "vit": ("vit_8px", SMALL, 200),
    "class token": ("vit_8px", SMALL | {"pool": "class"}, 200),
    "mixer": ("mixer_8px", {"depth": 6, "dim": 32}, 200),
    "resnet": ("resnet_8px", {"stages": (2, 2, 2)}, 60),
    "pit": ("pit_32px", PIT, 60),
}


def digits() -> dict[str, Any]:
    """Trains the models and compares their layers, by name of the figure, a list over seeds each.

    ``few``: trained on a tenth of the digits. A twin is the ViT of the next seed.
    """
    whole = load_data("DIGITS")
    grown = [
        {kind: trained(kind, whole, seed) for kind in MODELS}
        | {"few": trained("vit", fraction_of(whole, 0.1, seed), seed)}
        for seed in SEEDS
    ]
    figures: dict[str, Any] = {}

    def add(figure: str, kind: str, value: Any) -> None:
        figures.setdefault(figure, {}).setdefault(kind, []).append(value)

    for i, models in enumerate(grown):
        twin = grown[(i + 1) % len(grown)]["vit"][0]
        preprocess = models["vit"][0].preprocess
        few, images = preprocess(whole.train.images), preprocess(whole.test.images)
        for kind, (model, accuracy) in models.items():
            add("accuracy", kind, accuracy)
            add("cka", kind, cka(model, images, *points(model)).values)
            if kind in ("vit", "few"):
                add("twin", kind, like(model, twin, images).diagonal())
                sides = (few, whole.train.labels), (images, whole.test.labels)
                layers = probes(model, *sides, *points(model))
                add("probes", kind, [layer.accuracy for layer in layers.values()])
            if kind in ("vit", "class token"):
                blocks = [f"blocks.{b}" for b in (0, 2, 5)]
                add("places", kind, [summary(localisation(model, images, b)) for b in blocks])
                read = [readable(model, few[:600], images, b, components=4) for b in blocks]
                add("read", kind, [summary(places) for places in read])
        add("between", "vit and resnet", like(models["vit"][0], models["resnet"][0], images))
    return figures


def fraction_of(whole: Data, fraction: float, seed: int) -> Data:
    """Some of the digits to train on, other ones for each seed, preprocessed as if all were."""
    few = load_data("DIGITS", size=whole.train.images.shape[2], fraction=fraction, seed=seed)
    return replace(few, mean=whole.mean, std=whole.std)


def on_digits(
    create: Callable[[], Model], amount: str, recipe: Recipe, rate: float, seed: int
) -> dict[str, Any]:
    """Scores of a model, and their curve, which has an epoch a point: trained on all digits, or on
    a tenth of them ten times over."""
    data = load_data("DIGITS")
    if amount == "tenth":
        few = fraction_of(data, 0.1, seed)
        many = Split(few.train.images.repeat(10, 1, 1, 1), few.train.labels.repeat(10))
        data = replace(few, train=many)
    return scored(create, data, recipe, rate, seed)


def trained(kind: str, data: Data, seed: int) -> tuple[Model, float]:
    name, changes, steps = MODELS[kind]
    recipe = Recipe(steps=steps, batch_size=64, learning_rate=1e-2, average=0.9)
    return fitted(partial(minivit.create, name, **changes), data, recipe, seed)


def points(model: Model) -> tuple[str, str]:
    """The first map, and what every block gives."""
    first = "patch_embedding" if hasattr(model, "patch_embedding") else "stem"
    return first, "blocks.?"


def like(model: Model, other: Model, images: Tensor) -> Tensor:
    """CKA of the layers of one model, the rows, with those of another."""
    return cka(model, images, *points(model), other=other, other_names=points(other)).values


def summary(places: Localisation) -> dict[str, Tensor]:
    """Means over all positions, and over the inner and the outer ones."""
    more, hits, inner = places.own - places.elsewhere, places.hits.double(), places.interior
    return {
        "own": places.own.mean(),
        "elsewhere": places.elsewhere.mean(),
        "hits": hits.mean(),
        "inner": more[inner].mean(),
        "outer": more[~inner].mean(),
        "inner hits": hits[inner].mean(),
        "outer hits": hits[~inner].mean(),
    }
