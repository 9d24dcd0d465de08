"""Where figures lie among a rule's thresholds: positions on a strip, in percent of its width."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from vitlab.claims.ledger import Claim
from vitlab.claims.rules import NO, YES, word_of

DECADES = 1000  # a scale on which all is positive and that reaches over as much is logarithmic
MARGIN = 0.06  # of the scale, at either end


@dataclass(frozen=True)
class Zone:
    """A stretch of the scale on which the rule gives one word."""

    left: float
    width: float
    word: str
    side: str  # as ``side`` says


@dataclass(frozen=True)
class Mark:
    """A figure with its interval; ``beyond`` the scale it stands at the edge."""

    name: str
    at: float
    left: float | None
    right: float | None
    beyond: str  # "", "below" or "above"
    kind: str  # model, book or baseline
    said: str


@dataclass(frozen=True)
class Strip:
    """The zones of a rule, its thresholds as ``(at, text)``, and the figures on them.

    ``cases`` are those of the rule: a word, its side, and when the rule gives it.
    """

    zones: Sequence[Zone]
    cases: Sequence[tuple[str, str, str]]
    ticks: Sequence[tuple[float, str]]
    marks: Sequence[Mark]


Row = tuple[str, str, float, float | None, float | None, str]  # name, kind, figure, ends, text


def strip(claim: Claim, rows: Sequence[Row]) -> Strip:
    """Lays out figures on a scale that holds all but baselines, which may lie beyond it."""
    thresholds = sorted(set(claim.rule.thresholds))
    inside = [x for _, kind, *values, _ in rows if kind != "baseline" for x in values]
    place = _scale([*thresholds, *(x for x in inside if x is not None)])
    edges = [-math.inf, *thresholds, math.inf]
    zones: list[Zone] = []
    for low, high in pairwise(edges):
        left, right = place(low), place(high)
        word = word_of(claim.rule.apply(_between(low, high)))
        zones.append(Zone(left, right - left, word, side(word)))
    said = [(word_of(v), f"if {sign} {x:g}") for sign, x, v in claim.rule.cases]
    cases = [(word, side(word), when) for word, when in said]
    last = word_of(claim.rule.otherwise)
    cases.append((last, side(last), "otherwise"))
    marks = [_mark(place, *row) for row in rows]
    return Strip(zones, cases, [(place(x), f"{x:g}") for x in thresholds], marks)


def side(word: str) -> str:
    """Yes, part (a yes that is qualified or weaker), no, or open."""
    if word in YES:
        return "yes" if word == YES[0] else "part"
    return "no" if word in NO else "open"


def _mark(
    place: Callable[[float], float],
    name: str,
    kind: str,
    figure: float,
    low: float | None,
    high: float | None,
    said: str,
) -> Mark:
    at = place(figure)
    beyond = "below" if at <= 0 else "above" if at >= 100 else ""
    ends = (None if low is None else place(low), None if high is None else place(high))
    return Mark(name, at, *ends, beyond, kind, said)


def _between(low: float, high: float) -> float:
    """A number inside an open interval."""
    if low == -math.inf:
        return high - 1 - abs(high)
    return low + 1 + abs(low) if high == math.inf else (low + high) / 2


def _scale(values: Sequence[float]) -> Callable[[float], float]:
    """From figures to percent of the width, which these values fill but for a margin."""
    low, high = min(values), max(values)
    logarithmic = low > 0 and high / low > DECADES

    def flat(x: float) -> float:
        if not logarithmic:
            return x
        return math.log(x) if x > 0 else -math.inf

    bottom, top = flat(low), flat(high)
    room = (top - bottom) or abs(top) or 1.0
    bottom, room = bottom - MARGIN * room, room * (1 + 2 * MARGIN)

    def place(x: float) -> float:
        return round(100 * min(max((flat(x) - bottom) / room, 0.0), 1.0), 2)

    return place
