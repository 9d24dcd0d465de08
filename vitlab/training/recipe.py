"""The settings of a training: its length, its step sizes, what happens to the images."""

import math
from dataclasses import dataclass
from typing import Literal

# The least and the largest value of each number.
RANGES: dict[str, tuple[float, float]] = {
    "steps": (1, 10**9),
    "batch_size": (1, 10**9),
    "operations": (0, 8),
    "magnitude": (0, 1),
    "seed": (0, 2**63 - 1),
}
TINY, BELOW_1, HUGE = 1e-300, math.nextafter(1, 0), 1e300
RANGES |= dict.fromkeys(("epochs", "minutes"), (TINY, 1e9))
RANGES |= dict.fromkeys(("learning_rate", "clip"), (TINY, HUGE))
RANGES |= dict.fromkeys(("warmup", "average", "label_smoothing", "shift", "cutout"), (0, BELOW_1))
RANGES |= dict.fromkeys(("weight_decay", "mixup"), (0, HUGE))


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
        for name, value in list(vars(self).items()):
            if isinstance(value, float):  # NumPy's too, which a state cannot hold
                object.__setattr__(self, name, float(value))
        for name, (low, high) in RANGES.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise ValueError(f"expected {name} from {low:g} to {high:g}: got {value!r}")
        if self.precision not in ("float32", "bfloat16") or (self.steps and self.minutes):
            raise ValueError(
                "expected precision float32 or bfloat16, and steps or minutes, not both: got "
                f"{self.precision}, {self.steps} steps and {self.minutes} minutes"
            )
