"""``verdict("R10", value)`` shows a claim, its value and interval, and the word of its rule."""

from dataclasses import asdict, replace
from statistics import fmean

import numpy as np
from IPython.display import display

from course.claims import card
from course.claims.estimate import Estimate, Values, interval
from course.claims.ledger import MIME, Found, spread
from course.claims.readings import Measured, Readings, to_store
from course.claims.rows import Claim, load
from vitlab.claims.rules import DEPENDS, UNCERTAIN, WORDS, YES, student, word_of

EDGE = 1.05  # an interval within a twentieth of itself of a threshold counts as reaching it
SHOWN = ("measured", "interval", "readings", "rule", "margin", "verdict")  # in text, of a card
Value = float | Measured | Readings | None


def verdict(claim_id: str, value: Value = None) -> None:
    """Shows the verdict on a claim; ``Rule.decide`` finds its word.

    The value is one number, or one for each seed (at least three), which are shown as their mean
    and its 95 % interval by Student's t; None for a claim with nothing to measure. The interval is
    widened by how far processors move the value, as ``make test-machines`` found, and by
    Bonferroni's correction where seeds were added after a first look. A claim that compares trained
    models takes :class:`Readings`, whose words must be the same. An :class:`Estimate` has an
    interval of its own. Of a claim whose parts must all hold, a tuple with the values of each, the
    worst verdict counts, the test by intersection and union (Berger 1982); if another part holds,
    and the rule has a verdict for that, it is this one.
    """
    claim = load().claims.get(claim_id)
    if claim is None:
        raise KeyError(f"no claim {claim_id!r} in claims.yml")
    if claim.rule is None:
        raise ValueError(f"{claim_id} has no rule yet: write it in claims.yml before measuring")
    if claim.rule.measures != (value is not None):
        needs = "a value" if claim.rule.measures else "no value"
        raise ValueError(f"{claim_id} needs {needs}: its rule is '{claim.rule}'")
    if claim.comparative != isinstance(value, Readings):
        needs = "readings" if claim.comparative else "no readings"
        raise ValueError(f"{claim_id} needs {needs}: comparative is {claim.comparative}")
    display(Verdict(claim, value))


class Verdict:
    """The output of ``verdict``: text for nbval to compare, a card for the page."""

    def __init__(self, claim: Claim, value: Value) -> None:
        self.claim, self.value = claim, value
        self.found = decided(claim, value)

    def __repr__(self) -> str:
        rows = dict(card.lines(self.claim, self.found))
        return card.text(self.claim, [(name, rows[name]) for name in SHOWN if name in rows])

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        """The output, with every digit of the value in its metadata, which nbval passes over."""
        data = asdict(self.found)
        about = {"id": self.claim.id, "seeds": list(data.pop("seeds"))}
        if (half := data.pop("half")) is not None:
            about["half"] = half
        about = to_store(self.value) | about
        del data["cell"]
        if not data["readings"]:
            del data["readings"]
        page = card.html(self.claim, self.found, f"verdict-{self.claim.id}")
        return {"text/plain": repr(self), "text/html": page, MIME: data}, {MIME: about}


def decided(claim: Claim, value: Value) -> Found:
    """What a claim's rule says of a value."""
    assert claim.rule is not None  # verdict() has refused such claims
    if isinstance(value, Readings):
        return with_readings(claim, value)
    if isinstance(value, tuple):
        return worst(claim, value)
    if value is None:
        return Found(claim.id, verdict=claim.rule.otherwise)
    seeds, given = (value.values, value.half) if isinstance(value, Estimate) else (value, None)
    values = np.atleast_1d(np.asarray(seeds, dtype=float))
    if values.ndim != 1 or len(values) in (0, 2) or not np.isfinite(values).all():
        raise ValueError(
            f"{claim.id}: a value is one finite number, or at least three of "
            f"them, one a seed: got {value}"
        )
    mean, several = float(values.mean()), len(values) > 1
    centre, half = interval(values, given, claim.share)
    if looked := claim.looks > 1 and several:
        half *= student(len(values) - 1, 0.05 / claim.looks) / student(len(values) - 1)
    between = spread(claim.id)  # None: tried on one processor alone
    moved = EDGE * (half + (between or 0))
    movers = [claim.replicates] if several else ["other images"] * (half > 0)
    unit = f" {claim.unit}" if claim.unit else ""
    told = ""
    if movers:
        low, high = (claim.rule.printed(x, claim.format) for x in (centre - half, centre + half))
        looks = f" over {claim.looks} looks" * looked
        span = f"{low} to {high}{unit}" if low != high else "narrower than the digits shown"
        told = f"{span} (95 %{looks}, {f'{len(values)} ' * several}{movers[0]})"
    movers += ["processors"] * (between is not None)
    return Found(
        claim.id,
        claim.rule.printed(mean, claim.format) + unit,
        told,
        _margin(min(abs(mean - x) for x in claim.rule.thresholds), moved, " and ".join(movers)),
        claim.rule.decide(centre, moved),
        seeds=tuple(values.tolist()),
        half=given,
    )


def worst(claim: Claim, parts: tuple[Values | Estimate, ...]) -> Found:
    """Of parts of a claim that must all hold, the one that speaks most against it."""
    assert claim.rule is not None
    side = -1 if claim.rule.cases[0][0].startswith(">") else 1  # where the claim fails
    found = [decided(claim, part) for part in parts]
    words = [word_of(one.verdict) for one in found]
    last = max(found, key=lambda one: (WORDS.index(word_of(one.verdict)), side * fmean(one.seeds)))
    if claim.rule.one_part and word_of(claim.rule.cases[0][2]) in words and not {*words} <= {*YES}:
        last = replace(last, verdict=claim.rule.one_part)
    return last


def with_readings(claim: Claim, readings: Readings) -> Found:
    """The verdict after the most steps, if all that are asked give its word."""
    found = {name: decided(claim, values) for name, values in readings.all.items()}
    words = {name: word_of(one.verdict) for name, one in found.items()}
    told = "; ".join(f"{name}: {found[name].figure}, {word}" for name, word in words.items())
    last = decided(claim, readings.value)
    differ = {words[name] for name in readings.asked} - {word_of(last.verdict)}
    if not differ or word_of(last.verdict) == UNCERTAIN:
        return replace(last, readings=told)
    at = {name: f"{'after' if 'steps' in name else 'at'} {name}" for name in readings.asked}
    others = " and ".join(
        f"'{word}' {' and '.join(at[name] for name in at if words[name] == word)}"
        for word in sorted(differ)
    )
    why = f"The word is '{word_of(last.verdict)}' after the most steps, but {others}."
    return replace(last, readings=told, verdict=f"{DEPENDS}: {why}")


def _margin(distance: float, moved: float, movers: str) -> str:
    """How far the nearest threshold is, in steps too coarse for a processor to change."""
    if not moved:
        return f"{movers} do not move the value" if movers else ""
    for times, least in (("over 100", 100), ("25 to 100", 25), ("5 to 25", 5), ("1 to 5", 1)):
        if distance >= least * moved:
            return f"the nearest threshold is {times} times as far as {movers} move the value"
    return f"the nearest threshold is no farther than {movers} move the value"
