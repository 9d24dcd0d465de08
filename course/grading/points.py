"""What an exercise is worth, and what an answer gets."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from course.grading.chapters import exercises

DEFAULT = 10.0

State = Literal["passed", "failed", "stopped", "open", "missing"]
WORDS: dict[State, str] = {
    "passed": "passed",
    "failed": "not yet",
    "stopped": "stopped",
    "open": "not attempted",
    "missing": "not found",
}


@dataclass(frozen=True)
class Mark:
    """What one answer gets, and why. ``share`` is the fraction of the expectations that it met."""

    exercise: str
    state: State
    message: str
    share: float
    points: float
    out_of: float
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The state in words, with the message of the first check that failed."""
        return f"{WORDS[self.state]}: {self.message}" if self.message else WORDS[self.state]


def share(state: State, right: int, asked: int) -> float:
    """The fraction of expectations met; 1 for a passed answer alone.

    Args:
        right: Expectations that the answer met before the first that it did not.
        asked: Those that the book's solution meets. A check may ask more of one answer than of
            another, so an answer that failed is held below all of them.
    """
    if state == "passed":
        return 1.0
    met = max(0, min(right, asked - 1)) if state in ("failed", "stopped") else 0
    return met / max(asked, 1)


def read_points(path: Path) -> dict[str, float]:
    """Points of exercises from a file of lines such as ``multi_head: 10`` (YAML, or JSON).

    Raises:
        ValueError: It holds anything else, or names that are no exercise.
    """
    import yaml

    try:
        loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is neither YAML nor JSON: {error}") from None
    if not isinstance(loaded, Mapping) or not loaded:
        raise ValueError(f"{path} should have lines such as 'multi_head: 10', one per exercise")
    known = {name for names in exercises().values() for name in names}
    for name, value in loaded.items():
        if name not in known:
            raise ValueError(f"{path} names {name!r}, which is not an exercise of the book")
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise ValueError(f"{path} gives {name} {value!r} points, expected a number above 0")
    return {name: float(value) for name, value in loaded.items()}
