"""``verdict("R10", figure)`` shows a claim, its figure and interval, and the word of its rule."""

import math
import textwrap
from collections.abc import Sequence
from html import escape

import numpy as np
from IPython.display import display

from course.claims.machines import spread
from course.claims.rows import Claim, load
from course.claims.rules import Rule, word_of

MIME = "application/vnd.minivit.verdict+json"  # what the ledger reads in the stored outputs
EDGE = 1.05  # an interval within a twentieth of itself of a threshold counts as reaching it
ROUNDING = 1e-4  # a threshold below this asks whether two things are equal up to rounding


def verdict(claim_id: str, figure: float | Sequence[float] | None = None) -> None:
    """Shows the verdict on a claim; ``Rule.decide`` finds its word.

    Args:
        claim_id: A claim of ``claims.yml`` with a rule.
        figure: One number, or one for each seed (at least three), which are shown as their mean
            and its 95 % interval by Student's t. None for a claim with nothing to measure.

    The interval is widened by how far processors move the figure, as ``make test-machines`` found.
    """
    claims = load().claims
    if claim_id not in claims:
        raise KeyError(f"no claim {claim_id!r} in claims.yml")
    claim = claims[claim_id]
    if claim.rule is None:
        raise ValueError(f"{claim_id} has no rule yet: write it in claims.yml before measuring")
    if claim.rule.measures != (figure is not None):
        needs = "a figure" if claim.rule.measures else "no figure"
        raise ValueError(f"{claim_id} needs {needs}: its rule is '{claim.rule}'")
    display(Verdict(claim, figure))


class Verdict:
    """The output of ``verdict``: text for nbval to compare, a card for the page."""

    def __init__(self, claim: Claim, figure: float | Sequence[float] | None) -> None:
        assert claim.rule is not None  # verdict() has refused such claims
        self.claim = claim
        self.rule = claim.rule
        self.figure = self.interval = self.margin = ""
        self.seeds: list[float] = []
        if figure is None:
            self.text = self.rule.otherwise
            return
        values = np.atleast_1d(np.asarray(figure, dtype=float))
        if values.ndim != 1 or len(values) in (0, 2) or not np.isfinite(values).all():
            raise ValueError(
                f"{claim.id}: a figure is one finite number, or at least three of "
                f"them, one a seed: got {figure}"
            )
        self.seeds = values.tolist()
        mean = values.mean()
        half = _half_width(values)
        moved = EDGE * (half + spread(claim.id))
        self.text = self.rule.decide(mean, moved)
        self.margin = _margin(min(abs(mean - x) for x in self.rule.thresholds), moved, len(values))
        self.figure = _number(mean, self.rule, claim.format)
        if len(values) > 1:
            low, high = (_number(x, self.rule, claim.format) for x in (mean - half, mean + half))
            span = f"{low} to {high}" if low != high else "narrower than the digits shown"
            self.interval = f"{span} (95 %, {len(values)} seeds)"

    @property
    def lines(self) -> dict[str, str]:
        """The lines shown, by heading, without the empty ones."""
        lines = {
            "measured": f"{self.figure}: {self.claim.measure}" if self.figure else "",
            "interval": self.interval,
            "rule": str(self.rule),
            "margin": self.margin,
            "verdict": self.text,
        }
        return {heading: text for heading, text in lines.items() if text}

    def __repr__(self) -> str:
        lines = {self.claim.id: self.claim.statement} | self.lines
        return "\n".join(
            textwrap.fill(text, 96, initial_indent=f"{heading:10}", subsequent_indent=" " * 10)
            for heading, text in lines.items()
        )

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        """The output, with every digit of the figure in its metadata, which is not stored."""
        found = {
            "id": self.claim.id,
            "figure": self.figure,
            "interval": self.interval,
            "margin": self.margin,
            "verdict": self.text,
        }
        shown = {"text/plain": repr(self), "text/html": self.html(), MIME: found}
        return shown, {MIME: {"id": self.claim.id, "seeds": self.seeds}}

    def html(self) -> str:
        """The card on the chapter's page."""
        word = word_of(self.text)
        why = escape(self.text.removeprefix(word))
        rows = "".join(
            f"<dt>{heading}</dt><dd>{escape(text)}</dd>"
            for heading, text in self.lines.items()
            if heading != "verdict"
        )
        return (
            f'<div class="verdict {css_class(word)}" id="verdict-{self.claim.id}">'
            f'<p class="verdict-word"><strong>{self.claim.id} {word}</strong>{why}</p>'
            f'<p class="verdict-claim">{escape(self.claim.statement)}</p><dl>{rows}</dl></div>'
        )


def css_class(word: str) -> str:
    """The style class of a verdict's word, or of ``"open"``."""
    return "verdict-" + word.split()[0].strip(",")


def _half_width(values: np.ndarray) -> float:
    """Half the 95 % interval of the mean; zero for a single number."""
    if len(values) == 1:
        return 0.0
    from scipy.stats import t  # a second to import, needed here alone

    return t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))


def _margin(distance: float, moved: float, seeds: int) -> str:
    """How far the nearest threshold is, in steps too coarse for a processor to change."""
    movers = "seeds and processors" if seeds > 1 else "processors"
    if not moved:
        return f"{movers} do not move the figure"
    for times, least in (("over 100", 100), ("25 to 100", 25), ("5 to 25", 5), ("1 to 5", 1)):
        if distance >= least * moved:
            return f"the nearest threshold is {times} times as far as {movers} move the figure"
    return f"the nearest threshold is no farther than {movers} move the figure"


def _number(x: float, rule: Rule, form: str) -> str:
    """A figure as printed; below a rounding threshold its digits mean nothing and are left out."""
    limit = min(rule.thresholds)
    if 0 < limit <= ROUNDING and 0 <= x < limit:
        return f"below {limit:g}"
    text = f"{x:{form}}"
    return text.lstrip("-") if float(text) == 0 else text
