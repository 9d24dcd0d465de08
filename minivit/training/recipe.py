"""What is chosen for a training: its length, its step sizes, what happens to the pictures."""

import math
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Recipe:
    """How a model is trained. :func:`dataclasses.replace` makes one with other settings.

    AdamW (Loshchilov & Hutter 2019), a linear warm-up and then a cosine down to zero, gradients
    clipped by their norm, an exponential moving average of the weights. Everything random is a
    function of ``seed`` and the step.

    Args:
        epochs: Passes over the training pictures.
        steps: Batches, in place of ``epochs``.
        minutes: About how long on this machine, in place of ``epochs``: a few steps are timed, and
            the number that fits is fixed before the first.
        batch_size: Pictures a step; all of them, if there are fewer.
        learning_rate: At its peak.
        warmup: Share of the steps over which the learning rate grows from zero.
        weight_decay: Taken from the weights of linear maps and convolutions, times the learning
            rate; from nothing else.
        clip: Largest norm of the gradient; a longer one is scaled down.
        average: Share of the moving average that stays at each step, 0 for none. Early on it is
            (1 + step) / (10 + step), if that is less.
        label_smoothing: Share of the target spread evenly over the classes (Szegedy et al. 2016).
        mixup: Pictures are mixed in pairs with a share drawn from Beta(mixup, mixup); 0 for none
            (Zhang et al. 2018).
        shift: Largest shift of a picture in each direction, as a share of its side. What comes in
            at the edge is the picture's mirror image.
        flip: Whether half of the pictures are mirrored left to right.
        operations: How many of eight operations befall each picture, after Cubuk et al. (2020),
            "RandAugment".
        magnitude: How strong these are, from 0, nothing, to 1.
        cutout: Side of the square of a picture that is greyed, as a share of the picture's
            (DeVries & Taylor 2017).
        precision: ``"float32"``, or ``"bfloat16"``: matrix products in bfloat16, weights, norms
            and losses in float32.
        seed: Of the order of the pictures and of all that happens to them.

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
        for field, value in list(vars(self).items()):
            if isinstance(value, float):  # NumPy's too, which a state cannot hold
                object.__setattr__(self, field, float(value))
        if self.steps is not None and self.minutes is not None:
            raise ValueError(
                f"a training lasts steps or minutes: got {self.steps} and {self.minutes}"
            )
        for field in ("steps", "batch_size", "operations", "seed"):
            value, least = getattr(self, field), int(field in ("steps", "batch_size"))
            if (value is not None or field != "steps") and (
                not isinstance(value, int) or isinstance(value, bool) or value < least
            ):
                raise ValueError(f"{field} must be a whole number, at least {least}: got {value!r}")
        for field, most in (("steps", 1e9), ("epochs", 1e9), ("minutes", 1e6), ("seed", 2**63 - 1)):
            value = getattr(self, field)
            if _is_number(value) and value > most:
                raise ValueError(f"{field} must be at most {most:.10g}: got {value!r}")
        if self.operations > 8:
            raise ValueError(f"there are 8 operations: got operations={self.operations}")
        for field in ("epochs", "minutes", "learning_rate", "clip"):
            value = getattr(self, field)
            if value is not None and not (_is_number(value) and 0 < value < math.inf):
                raise ValueError(f"{field} must be above 0: got {value!r}")
        for field in ("weight_decay", "mixup"):
            value = getattr(self, field)
            if not (_is_number(value) and 0 <= value < math.inf):
                raise ValueError(f"{field} must be at least 0: got {value!r}")
        for field in ("warmup", "average", "label_smoothing", "shift", "cutout"):
            value = getattr(self, field)
            if not (_is_number(value) and 0 <= value < 1):
                raise ValueError(f"{field} must be at least 0 and below 1: got {value!r}")
        if not (_is_number(self.magnitude) and 0 <= self.magnitude <= 1):
            raise ValueError(f"magnitude must be from 0 to 1: got {self.magnitude!r}")
        if not isinstance(self.flip, bool):
            raise ValueError(f"flip is true or false: got {self.flip!r}")
        if self.precision not in ("float32", "bfloat16"):
            raise ValueError(f"precision is float32 or bfloat16: got {self.precision!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
