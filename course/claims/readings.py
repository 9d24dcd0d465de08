"""A comparison of trained models at other ends of training, over which its word must not change."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from course.claims.estimate import Estimate, Values

Measured = Values | Estimate | tuple[Values | Estimate, ...]
Row = Mapping[str, Any]  # figures of a row of a study, a list over seeds each
ENDS = "", ", 3 x", ", 10 x"  # of the names of rows, by when training stops


@dataclass(frozen=True)
class Readings:
    """Values by steps of training, fewest first, and of others of the longest trainings."""

    by_steps: dict[int, Measured]
    others: dict[str, Measured]  # at the next rate, at equal training loss

    @property
    def value(self) -> Measured:
        """What counts: after the most steps."""
        return self.by_steps[max(self.by_steps)]

    @property
    def asked(self) -> dict[str, Measured]:
        """Those that must give the same word: the two longest, and the others."""
        longest = sorted(self.by_steps)[-2:]
        return {f"{steps:,} steps": self.by_steps[steps] for steps in longest} | self.others

    @property
    def all(self) -> dict[str, Measured]:
        return {f"{steps:,} steps": self.by_steps[steps] for steps in self.by_steps} | self.others


def readings(
    rows: Mapping[str, Row], names: Sequence[str], measure: Callable[..., Measured]
) -> Readings:
    """What ``measure`` makes of the rows with these names, wherever training ends.

    It takes a row for each name: those of the study, after 3 and 10 times the steps, at the next
    rate, and with the accuracy where all have the training loss of the one that ends highest.
    """
    lengths = [[rows[name + end] for name in names] for end in ENDS if names[0] + end in rows]
    by_steps = {int(chosen[0]["steps"]): measure(*chosen) for chosen in lengths}
    bracketed = [chosen for chosen in lengths if "next" in chosen[0]][-1]
    others = {"the next rate": measure(*(row["next"] for row in bracketed))}
    others["equal training loss"] = measure(*at_equal_loss(lengths[-1]))
    return Readings(by_steps, others)


def at_equal_loss(rows: Sequence[Row]) -> list[Row]:
    """For each row, the accuracies after the first epoch with a loss that all rows reach."""
    level = max(curve[-1][1] for row in rows for curve in row["curve"])
    reached = [
        [next(right for _, loss, right in curve if loss <= level) for curve in row["curve"]]
        for row in rows
    ]
    return [{"accuracy": np.array(values)} for values in reached]
