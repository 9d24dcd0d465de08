"""Numbers that pages say of the ledger, counted when they are built."""

from collections import Counter

from course.claims.ledger import Found
from course.claims.rows import load
from vitlab.claims.rules import NO, word_of

MISSES = 20  # of so many 95 % intervals, one misses its truth


def counts(found: dict[str, Found]) -> dict[str, int]:
    """The numbers by name, of which ``{count}`` takes one."""
    claims = load().claims
    answered = [claims[name] for name in found]
    ruled = [claim for claim in answered if claim.since]
    intervals = sum(len(verdict.seeds) > 1 for verdict in found.values())
    return {
        "claims": len(claims),
        "answered": len(answered),
        "open": len(claims) - len(answered),
        "rules": len(ruled),
        "before": sum(claim.before for claim in ruled),
        "together": sum(not claim.before for claim in ruled),
        "amended": sum(bool(claim.amended) for claim in ruled),
        "other-words": sum(
            any(a.verdict for a in claim.amended) for claim in ruled
        ),
        "intervals": intervals,
        "misses": round(intervals / MISSES),
        "one-figure": sum(
            len(verdict.seeds) == 1 and claims[name].basis == "measured"
            for name, verdict in found.items()
        ),
        "proofs": sum(claim.basis == "proved" for claim in answered),
        "inferred": sum(bool(claim.inferred) for claim in claims.values()),
    }


def summary(found: dict[str, Found]) -> str:
    """What the book found, in words; what the sources only imply is counted apart."""
    number, claims = counts(found), load().claims
    stated = Counter(
        word_of(verdict.verdict)
        for name, verdict in found.items()
        if not claims[name].inferred
    )
    implied = Counter(
        word_of(found[name].verdict) if name in found else "open"
        for name, claim in claims.items()
        if claim.inferred
    )
    refuted, opposite = (stated[word] for word in NO)
    said = "; ".join(f"{count} {word}" for word, count in implied.items())
    return (
        f"{number['answered']} of {number['claims']} claims have a verdict. Of those that the "
        f"sources state, {refuted} are refuted, and of {opposite} the opposite was seen here. "
        f"{number['inferred']} more are only implied by a source and counted apart ({said})."
    )
