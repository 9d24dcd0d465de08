"""Intervals that the values of seeds do not give by Student's t alone."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vitlab.claims.rules import half_width, student

Values = Sequence[float]  # one a seed


@dataclass(frozen=True)
class Estimate:
    """Values whose mean counts, and half of its 95 % interval."""

    values: Values
    half: float


def unpaired(one: Values, other: Values) -> Estimate:
    """The mean of one less that of another, where a seed of both is no pair (Welch 1947).

    Two architectures have no weight in common, whatever the seed. Of one seed each, half is zero.
    """
    both = [np.asarray(values, dtype=float) for values in (one, other)]
    if len(one) == len(other) == 1:
        return Estimate((both[0] - both[1]).tolist(), 0.0)
    errors = [values.var(ddof=1) / len(values) for values in both]
    rest = sum(error**2 / (len(v) - 1) for error, v in zip(errors, both, strict=True))
    half = student(sum(errors) ** 2 / rest) * math.sqrt(sum(errors)) if rest else 0.0
    return Estimate((both[0] - both[1].mean()).tolist(), float(half))


def on_images(values: Values | Estimate, right: Values, images: int) -> Estimate:
    """Differences of accuracies, each seed's on the same images, of which others could be drawn.

    ``right`` has the accuracy of each model compared. Their binomial errors are added as if models
    were right on different images; they mostly are on the same, so this is no less than it should.
    """
    half = 1.96 * math.sqrt(sum(p * (1 - p) for p in right) / images)
    if isinstance(values, Estimate):
        return Estimate(values.values, math.hypot(values.half, half))
    each = np.asarray(values, dtype=float)
    return Estimate(each.tolist(), math.hypot(half_width(each), half))


def interval(values: np.ndarray, half: float | None, share: bool) -> tuple[float, float]:
    """Of the values' mean, the centre and half of its 95 % interval.

    Student's t, unless a half is given; of shares Wilson's (1927), which stays in [0, 1], with the
    variance of the seeds in place of the binomial one.
    """
    mean, n = float(values.mean()), len(values)
    if not share or n == 1 or not values.std():
        return mean, half_width(values) if half is None else half
    c = student(n - 1) ** 2 * float(values.var(ddof=1)) / (n * mean * (1 - mean))
    return (mean + c / 2) / (1 + c), math.sqrt(c * mean * (1 - mean) + c * c / 4) / (1 + c)
