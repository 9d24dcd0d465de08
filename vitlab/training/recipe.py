"""The settings of a training: its length, its step sizes, what happens to the images."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Recipe:
    """How a model is trained. :func:`dataclasses.replace` makes one with other settings.

    AdamW (Loshchilov & Hutter 2019), a linear warm-up and then a cosine down to zero, gradients
    clipped by their norm, an exponential moving average of the weights. Everything random is a
    function of ``seed`` and the step.

    Args:
        epochs: Passes over the training images.
        steps: Batches, instead of epochs.
        minutes: About how long on this machine, instead of epochs: a few steps are timed, and the
            number that fits is fixed before training starts.
        batch_size: Images per step, or all of them if there are fewer.
        learning_rate: At its peak.
        warmup: Fraction of the steps over which the learning rate grows from zero.
        weight_decay: Applied to the weights of linear maps and convolutions alone.
        clip: Largest norm of the gradient; a longer one is scaled down.
        average: Decay of the moving average of the weights, 0 for none. Early on it is
            min(average, (1 + step) / (10 + step)).
        label_smoothing: Fraction of the target spread evenly over the classes (Szegedy et al.
            2016).
        mixup: Images are mixed in pairs with a weight from Beta(mixup, mixup), 0 for none (Zhang et
            al. 2018).
        shift: Largest shift of an image in each direction, as a fraction of its side. The mirror
            image enters at the edge.
        flip: Whether half of the images are mirrored left to right.
        operations: How many of eight operations change each image, after "RandAugment" (Cubuk et
            al. 2020).
        magnitude: How strong these are, from 0 to 1.
        cutout: Side of a grey square in each image, as a fraction of the image's side (DeVries &
            Taylor 2017).
        precision: bfloat16 takes matrix products in bfloat16, and weights, norms and losses in
            float32.
        seed: Of the order of the images and of all that happens to them.

    Raises:
        ValueError: A number out of its range, an unknown precision, or both steps and minutes.
    """

    epochs: float = 20
    steps: int | None = None
    minutes: float | None = None
    batch_size: int = 128
    learning_rate: float = 1e-3
    warmup: float = 0.1
    weight_decay: float = 0.05
    clip: float = 1.0
    average: float = 0.99
    label_smoothing: float = 0.1
    mixup: float = 0.0
    shift: float = 0.0
    flip: bool = False
    operations: int = 0
    magnitude: float = 0.5
    cutout: float = 0.0
    precision: Literal["float32", "bfloat16"] = "float32"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.steps is not None and self.minutes is not None:
            raise ValueError(
                f"give steps or minutes, not both: got {self.steps} and {self.minutes}"
            )
        for field, value in list(vars(self).items()):
            if isinstance(value, float):  # NumPy's too, which a state cannot hold
                object.__setattr__(self, field, float(value))
            if value is None and field in ("steps", "minutes"):
                continue
            kind, allowed, expected = RULES[field]
            fits = isinstance(value, kind) and isinstance(value, bool) == (kind is bool)
            if not fits or not allowed(value):
                raise ValueError(f"{field} must be {expected}: got {value!r}")


def _whole(least: int, most: float = math.inf) -> tuple[Any, Callable[[Any], bool], str]:
    said = f"a whole number, at least {least}" + (f", at most {most}" if most < math.inf else "")
    return int, lambda x: least <= x <= most, said


def _positive(most: float = math.inf) -> tuple[Any, Callable[[Any], bool], str]:
    said = "above 0" + (f" and at most {most:.0f}" if most < math.inf else "")
    return int | float, lambda x: 0 < x <= most and x < math.inf, said


NOT_NEGATIVE = (int | float, lambda x: 0 <= x < math.inf, "at least 0")
FRACTION = (int | float, lambda x: 0 <= x < 1, "at least 0 and below 1")
# For each field its type, a test of its values, and what an error calls them.
RULES: dict[str, tuple[Any, Callable[[Any], bool], str]] = {
    "epochs": _positive(1e9),
    "steps": _whole(1, 10**9),
    "minutes": _positive(1e6),
    "batch_size": _whole(1),
    "learning_rate": _positive(),
    "warmup": FRACTION,
    "weight_decay": NOT_NEGATIVE,
    "clip": _positive(),
    "average": FRACTION,
    "label_smoothing": FRACTION,
    "mixup": NOT_NEGATIVE,
    "shift": FRACTION,
    "flip": (bool, lambda x: True, "true or false"),
    "operations": _whole(0, 8),
    "magnitude": (int | float, lambda x: 0 <= x <= 1, "from 0 to 1"),
    "cutout": FRACTION,
    "precision": (str, lambda x: x in ("float32", "bfloat16"), "float32 or bfloat16"),
    "seed": _whole(0, 2**63 - 1),
}
