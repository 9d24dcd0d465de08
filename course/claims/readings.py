"""A comparison of trained models at other ends of training, over which its word must not change."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from course.claims.estimate import Estimate, Values

Measured = Values | Estimate | tuple[Values | Estimate, ...]
Row = Mapping[str, Any]  # figures of a row of a study, a list over seeds each
ENDS = ", 1 x", ", 3 x", ", 10 x", ", long"  # of the names of rows, by when training stops


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
    def all(self) -> dict[str, Measured]:
        by_steps = {f"{steps:,} steps": self.by_steps[steps] for steps in sorted(self.by_steps)}
        return by_steps | dict(sorted(self.others.items()))

    @property
    def asked(self) -> list[str]:
        """The names of those that must give the same word: the two longest, and the others."""
        return list(self.all)[-2 - len(self.others) :]


def readings(
    rows: Mapping[str, Row],
    names: Sequence[str],
    measure: Callable[..., Measured],
    key: str | None = "accuracy",
) -> Readings:
    """What ``measure`` makes of the rows with these names, wherever training ends.

    It takes what stands in each row under ``key``, or the whole rows: after as many steps as in the
    study, 3 and 10 times as many, at the next rate, and where all have the loss of the one that
    ends highest, if the rows have a ``curve``.
    """

    def measured(chosen: Iterable[Row]) -> Measured:
        return measure(*(np.array(row[key]) if key else row for row in chosen))

    first = ENDS[0] if names[0] + ENDS[0] in rows else ""
    ends = [end for end in (first, *ENDS[1:]) if names[0] + end in rows]
    lengths = [[rows[name + end] for name in names] for end in ends]
    by_steps = {int(chosen[0]["steps"]): measured(chosen) for chosen in lengths}
    bracketed = [chosen for chosen in lengths if "next" in chosen[0]][-1]
    others = {"the next rate": measured(row["next"] for row in bracketed)}
    if "curve" in lengths[-1][0]:
        others["equal training loss"] = measure(*at_equal_loss(lengths[-1]))
    return Readings(by_steps, others)


def at_equal_loss(rows: Sequence[Row]) -> list[np.ndarray]:
    """For each row, the values after the first epoch with a loss that all rows reach, over seeds.

    A row's ``curve`` has, for each seed, epochs with their steps, loss and value.
    """
    level = max(curve[-1][1] for row in rows for curve in row["curve"])
    return [
        np.array([next(x for _, loss, x in curve if loss <= level) for curve in row["curve"]])
        for row in rows
    ]


def to_store(value: Any) -> dict[str, Any]:
    """A value of a verdict, with every digit, for the metadata of its output."""
    if isinstance(value, Readings):
        ends = value.by_steps, value.others
        return {"ends": [{str(end): to_store(each) for end, each in of.items()} for of in ends]}
    if isinstance(value, tuple):
        return {"parts": [to_store(part) for part in value]}
    if isinstance(value, Estimate):
        return {"seeds": list(value.values), "half": value.half}
    return {"seeds": [] if value is None else np.atleast_1d(value).tolist()}


def stored(about: dict[str, Any]) -> Any:
    """A value from the metadata of its output."""
    if "ends" in about:
        by_steps, others = ({e: stored(each) for e, each in of.items()} for of in about["ends"])
        return Readings({int(steps): each for steps, each in by_steps.items()}, others)
    if "parts" in about:
        return tuple(stored(part) for part in about["parts"])
    values = about["seeds"] or None
    return values if about.get("half") is None else Estimate(about["seeds"], about["half"])
