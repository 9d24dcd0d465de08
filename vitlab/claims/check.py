"""Whether a stored audit is what its model gives: claims of it measured again."""

from collections.abc import Mapping
from typing import Any

from vitlab.claims.probe import Probe, Subject
from vitlab.claims.run import ask

ROUNDING = 1e-3  # of the figure: what processors and batch sizes may change
OF_THE_INTERVAL = 0.1  # of half of it, which is less than other images would change


def same_inputs(stored: Mapping[str, Any], model: Mapping[str, Any], images: str) -> list[str]:
    """Which of the hashes of a stored audit are not those here; nothing where all are.

    Args:
        model: What :func:`~vitlab.claims.run.about` says of the model here.
        images: The hash of the images here.
    """
    pairs = (
        ("weights", stored["model"]["weights"], model["weights"]),
        ("images", stored["images"]["sha256"], images),
    )
    return [
        f"the {what} differ: {there[:16]} there, {here[:16]} here"
        for what, there, here in pairs
        if there != here
    ]


def compare(stored: Mapping[str, Any], probe: Probe, subject: Subject, seed: int) -> list[str]:
    """What is different when a claim of a stored audit is asked again; nothing where it is not."""
    rows = {row["id"]: row for row in stored["claims"]}
    row = rows.get(probe.claim)
    if row is None or row["state"] != "measured":
        return [f"{probe.claim} was not measured in the stored audit"]
    answer = ask(probe, subject, seed)
    if answer.figure is None:
        return [f"{probe.claim} {answer.state} here: {answer.reason}"]
    half = 0.0 if row["low"] is None else (row["high"] - row["low"]) / 2
    allowed = max(ROUNDING * max(abs(row["figure"]), 1e-6), OF_THE_INTERVAL * half)
    if abs(answer.figure - row["figure"]) <= allowed:
        return []
    return [
        f"{probe.claim} is {answer.figure:.6g} here, and {row['figure']:.6g} there: expected a "
        f"difference of at most {allowed:.2g}"
    ]
