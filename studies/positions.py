"""Four kinds of positions in one small ViT. ``python -m studies.positions --help``"""

import sys
from dataclasses import replace

from studies.command import Study, main
from studies.one import Run
from studies.small import search, variants

KINDS = ("none", "learned", "sincos1d", "sincos2d")


def finals(kind: str, best: Run) -> list[Run]:
    """A row's runs; the search had learned positions, and theirs is what it has found."""
    if kind != "learned":
        best = replace(best, changes=best.changes | {"positions": kind})
    return variants(best, range(3))


STUDY = Study("positions", {kind: search("vit") for kind in KINDS}, finals)

if __name__ == "__main__":
    sys.exit(main(STUDY))
