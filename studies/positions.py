"""Four kinds of positions in one small ViT.

The stored ``none`` was created without positions, and so began with other weights than a ViT from
which they are removed.
"""

from dataclasses import replace

from studies.runner.run import Run
from studies.runner.study import Study
from studies.shared.small_models import search, variants

KINDS = ("none", "learned", "sincos1d", "sincos2d")


def finals(kind: str, best: Run) -> list[Run]:
    """A row's runs; those with learned positions are as in the search."""
    if kind == "none":
        best = replace(best, removed=("positions",))
    elif kind != "learned":
        best = replace(best, changes=best.changes | {"positions": kind})
    return variants(best, range(3))


STUDY = Study("positions", {kind: search("vit") for kind in KINDS}, finals)
