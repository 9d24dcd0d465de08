"""Figures as results hold them: lists over seeds, rounded, as JSON has them."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from torch import Tensor

from studies.runner.survey import Figures, Survey


def survey(
    name: str,
    rows: Mapping[str, Callable[[], Figures]],
    seeds: Sequence[int] = (0,),
    digits: str = ".4f",
) -> Survey:
    """A survey from what measures each row; its figures are made :func:`plain`."""
    return Survey(name, list(rows), lambda row: plain(rows[row](), digits), seeds)


def over_seeds(rows: Iterable[Figures]) -> Figures:
    """A list for each figure out of a figure for each seed."""
    rows = list(rows)
    return {key: [row[key] for row in rows] for key in rows[0]}


def plain(figures: Any, digits: str = ".4f") -> Any:
    """Figures in a form that JSON has, to four digits after the point; none for NaN.

    With ``digits=".4g"`` they have four digits in all, with ``""`` they are not rounded.
    """
    if isinstance(figures, dict):
        return {key: plain(value, digits) for key, value in figures.items()}
    if isinstance(figures, Tensor):
        figures = figures.tolist()
    if isinstance(figures, list | tuple):
        return [plain(x, digits) for x in figures]
    if figures is None or isinstance(figures, int | str):
        return figures
    return None if math.isnan(figures) else float(f"{figures:{digits}}")
