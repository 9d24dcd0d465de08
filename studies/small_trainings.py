"""The studies that train small models, each in a few lines: what competes, and what follows."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import minivit
from minivit.model import Model
from studies.runner.pool import weights_of
from studies.runner.run import Run
from studies.runner.storage import Store
from studies.runner.study import Rows, Runs, Study
from studies.shared import small_models
from studies.shared.small_models import rates, search, variants
from studies.shared.training import outputs
from vitlab.data import Split
from vitlab.training.recipe import DEFAULTS, Recipe


def seeds(number: int, *fewer: int) -> Callable[[str, Run], list[Run]]:
    """The run that was found, from this many seeds; on fewer images, if given."""
    return lambda row, best: variants(best, range(number), *fewer)


# What augmentation does to accuracy and calibration, on 5,000 images, each of which every training
# sees about 13 times. No row smooths the labels: that alone would change how sure a model is.
SHIFTED = small_models.NOTHING | {"shift": 0.125, "flip": True}
STRONG = SHIFTED | {"operations": 2, "magnitude": 0.5, "mixup": 0.5, "cutout": 0.5}
AUGMENTED = {"none": small_models.NOTHING, "weak": SHIFTED, "strong": STRONG}


def confidence(model: Model, split: Split) -> float:
    """The mean of the largest probability: the accuracy that the model predicts for itself."""
    logits = outputs(model.eval(), model.preprocess(split.images))
    return logits.double().softmax(1).amax(1).mean().item()


def confidences(finals: Runs, store: Store) -> Rows:
    """The mean confidence of the models on the test part, one number a seed."""

    def of(run: Run) -> float:
        return confidence(minivit.load(weights_of(run, store)), run.load().test)

    return {name: {"confidence": [of(run) for run in runs]} for name, runs in finals.items()}


augmentation = Study(
    "augmentation",
    {name: search("vit") for name in AUGMENTED},
    lambda row, best: variants(best, range(3), 5_000, **AUGMENTED[row]),
    confidences,
)

# Which small ViT is the best that a short training gives? A linear map per patch and a
# convolutional stem compete at the same rates; the better goes on to 37 epochs, about 100 minutes
# of one thread.
STEMS = [Run("vit_32px", stem, small_models.RECIPE) for stem in ({}, {"stem": "conv"})]
best_small_vit = Study(
    "best_small_vit",
    {"cifar10_vit": [run for stem in STEMS for run in rates(stem, small_models.RATES)]},
    lambda row, best: variants(best, [best.recipe.seed], steps=13_000, average=0.999),
)

# How good does a ViT of this size become with either stem in 140 epochs of stronger augmentation?
# For a linear map per patch, which can be inverted, the rate is halved or images mixed. On an
# accelerator, six minutes for all four at once.
LONG = Recipe(
    steps=12_200, batch_size=512, learning_rate=2e-3, warmup=0.05, weight_decay=0.1, average=0.999,
    shift=0.125, flip=True, operations=2, magnitude=0.5, precision="bfloat16",
)  # fmt: skip
PATCH = [LONG, replace(LONG, mixup=0.3), replace(LONG, learning_rate=1e-3)]
CONV = replace(LONG, learning_rate=3e-3)
long_trainings = Study(
    "long_trainings",
    {
        "cifar10_vit_patch": [Run("vit_32px", {}, recipe) for recipe in PATCH],
        "cifar10_vit_conv": [Run("vit_32px", {"stem": "conv"}, CONV)],
    },
    lambda row, best: [best],
)

# One small model of each family on digits, seconds each. With 179 images to validate on, rates that
# differ by less than two points or so cannot be told apart.
DIGITS = {f"digits_{family}": f"{family}_8px" for family in ("vit", "mixer", "resnet")}
digits = Study(
    "digits",
    {
        row: rates(Run(model, {}, DEFAULTS["DIGITS"][1], data="DIGITS"), (1e-3, 3e-3, 1e-2))
        for row, model in DIGITS.items()
    },
    seeds(5),
)

# How many heads, and how many blocks? Heads share the width of 64 among them, so their number
# changes no count of parameters. The first row, six blocks with four heads, is that of the search.
HEADS: dict[str, dict[str, Any]] = {
    "base": {},
    **{f"heads_{n}": {"heads": n} for n in (1, 2, 8)},
    **{f"depth_{n}": {"depth": n} for n in (1, 2, 4)},
}
heads = Study(
    "heads",
    {row: search("vit") for row in HEADS},
    lambda row, best: variants(replace(best, changes=best.changes | HEADS[row]), range(3)),
)


def with_positions(kind: str, best: Run) -> list[Run]:
    """Those with learned positions are as in the search."""
    if kind == "none":
        best = replace(best, removed=("positions",))
    elif kind != "learned":
        best = replace(best, changes=best.changes | {"positions": kind})
    return variants(best, range(3))


KINDS = ("none", "learned", "sincos1d", "sincos2d")
positions = Study("positions", {kind: search("vit") for kind in KINDS}, with_positions)


def memorising(family: str, best: Run) -> list[Run]:
    """2,000 images, each with a class drawn at random, 80 times over; no augmentation."""
    runs = variants(best, [0], 2_000, **small_models.NOTHING, steps=1_200)
    return [replace(run, random_labels=True) for run in runs]


random_labels = Study("random_labels", {f: search(f) for f in ("resnet", "vit")}, memorising)


def with_depth(family: str, depth: int, removed: tuple[str, ...]) -> list[Run]:
    """With residuals and without, each searches for its own rate. 16 tokens are cheap."""
    model = small_models.MODELS[family]
    changes = model.changes | {"patch_size": 8, "depth": depth}
    run = replace(model, changes=changes, recipe=replace(model.recipe, steps=350), removed=removed)
    return rates(run, (1e-4, 3e-4, 1e-3, 3e-3))


residual = Study(
    "residual",
    {
        f"{family}_{depth}{end}": with_depth(family, depth, removed)
        for family in ("vit", "mixer")
        for depth in (4, 8, 16)
        for end, removed in {"": (), "_no_residual": ("residual",)}.items()
    },
    seeds(3),
)

# Patches against a convolutional stem (Xiao et al. 2021), at equal training time, in trainings so
# short that they tell how fast a model learns. At the middle width four rates are tried, to see
# which stem tolerates more of them.
# Images a second in training with a convolutional stem over those with patches, by width, as
# measured by interleaved steps on one thread in bfloat16.
SPEED = {32: 0.9, 64: 0.97, 128: 0.95}
STEM_RATES = {32: (1e-3, 3e-3), 64: (3e-4, 1e-3, 3e-3, 1e-2), 128: (1e-3, 3e-3)}


def with_stem(stem: str, dim: int) -> list[Run]:
    steps = round(300 * (SPEED[dim] if stem == "conv" else 1))
    recipe = replace(small_models.WEAK, steps=steps, batch_size=64, average=0.98)
    changes = {"dim": dim, "heads": dim // 32, "stem": stem}
    return rates(Run("vit_32px", changes, recipe), STEM_RATES[dim])


stems = Study(
    "stems",
    {f"{stem}_{dim}": with_stem(stem, dim) for dim in SPEED for stem in ("patch", "conv")},
    seeds(3),
)

# Fully connected networks, narrow and wide: a ViT whose patch is the image, without attention,
# norms, residuals and positions. 3,072 inputs, then twice a hidden layer with a GELU, on 2,000
# images without augmentation.
CONNECTED = Run(
    "vit_32px",
    {"patch_size": 32, "depth": 2, "heads": 1, "mlp_ratio": 1},
    replace(small_models.SHORT, steps=800, **small_models.NOTHING),
    fraction=2_000 / small_models.WHOLE,
    removed=("attention", "norm", "positions", "residual"),
)
width = Study(
    "width",
    {
        f"width_{dim}": rates(
            replace(CONNECTED, changes=CONNECTED.changes | {"dim": dim}), (3e-4, 1e-3)
        )
        for dim in (16, 64, 256, 1024)
    },
    seeds(3, 2_000),
)
