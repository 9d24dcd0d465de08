"""``verdict("R10", value)`` shows a claim, its value and interval, and the word of its rule."""

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
from IPython.display import display

from course.claims import card
from course.claims.ledger import MIME, Found, spread
from course.claims.rows import Claim, load
from vitlab.claims.rules import half_width

EDGE = 1.05  # an interval within a twentieth of itself of a threshold counts as reaching it
SHOWN = ("measured", "interval", "rule", "margin", "verdict")  # of a card, without its page


def verdict(claim_id: str, value: float | Sequence[float] | None = None) -> None:
    """Shows the verdict on a claim; ``Rule.decide`` finds its word.

    The value is one number, or one for each seed (at least three), which are shown as their mean
    and its 95 % interval by Student's t; None for a claim with nothing to measure. The interval is
    widened by how far processors move the value, as ``make test-machines`` found.
    """
    claims = load().claims
    if claim_id not in claims:
        raise KeyError(f"no claim {claim_id!r} in claims.yml")
    claim = claims[claim_id]
    if claim.rule is None:
        raise ValueError(f"{claim_id} has no rule yet: write it in claims.yml before measuring")
    if claim.rule.measures != (value is not None):
        needs = "a value" if claim.rule.measures else "no value"
        raise ValueError(f"{claim_id} needs {needs}: its rule is '{claim.rule}'")
    display(Verdict(claim, value))


class Verdict:
    """The output of ``verdict``: text for nbval to compare, a card for the page."""

    def __init__(self, claim: Claim, value: float | Sequence[float] | None) -> None:
        self.claim = claim
        self.found = decided(claim, value)

    def __repr__(self) -> str:
        rows = dict(card.lines(self.claim, self.found))
        return card.text(self.claim, [(name, rows[name]) for name in SHOWN if name in rows])

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        """The output, with every digit of the value in its metadata, which nbval passes over."""
        data = asdict(self.found)
        seeds = list(data.pop("seeds"))
        del data["cell"]
        page = card.html(self.claim, self.found, f"verdict-{self.claim.id}")
        shown = {"text/plain": repr(self), "text/html": page, MIME: data}
        return shown, {MIME: {"id": self.claim.id, "seeds": seeds}}


def decided(claim: Claim, value: float | Sequence[float] | None) -> Found:
    """What a claim's rule says of a value."""
    assert claim.rule is not None  # verdict() has refused such claims
    if value is None:
        return Found(claim.id, "", "", "", claim.rule.otherwise)
    values = np.atleast_1d(np.asarray(value, dtype=float))
    if values.ndim != 1 or len(values) in (0, 2) or not np.isfinite(values).all():
        raise ValueError(
            f"{claim.id}: a value is one finite number, or at least three of "
            f"them, one a seed: got {value}"
        )
    mean = float(values.mean())
    half = half_width(values)
    between = spread(claim.id)  # None: tried on one processor alone
    moved = EDGE * (half + (between or 0))
    movers = [claim.replicates] * (len(values) > 1) + ["processors"] * (between is not None)
    unit = f" {claim.unit}" if claim.unit else ""
    interval = ""
    if len(values) > 1:
        low, high = (claim.rule.printed(x, claim.format) for x in (mean - half, mean + half))
        span = f"{low} to {high}{unit}" if low != high else "narrower than the digits shown"
        interval = f"{span} (95 %, {len(values)} {claim.replicates})"
    return Found(
        claim.id,
        claim.rule.printed(mean, claim.format) + unit,
        interval,
        _margin(min(abs(mean - x) for x in claim.rule.thresholds), moved, movers),
        claim.rule.decide(mean, moved),
        tuple(values.tolist()),
    )


def _margin(distance: float, moved: float, moves: list[str]) -> str:
    """How far the nearest threshold is, in steps too coarse for a processor to change."""
    movers = " and ".join(moves)
    if not moved:
        return f"{movers} do not move the value" if movers else ""
    for times, least in (("over 100", 100), ("25 to 100", 25), ("5 to 25", 5), ("1 to 5", 1)):
        if distance >= least * moved:
            return f"the nearest threshold is {times} times as far as {movers} move the value"
    return f"the nearest threshold is no farther than {movers} move the value"
