"""Where in a ResNet does attention help, if it does?

ResNets of six blocks in three stages; ``1`` stands for a stage whose last block is one of
attention: ``001`` has it in the last stage alone. ``begin`` has attention at the beginning of all
stages, ``wide`` is ``111`` with as many weights as ``000``, in ``flat`` networks all stages are
equally wide. ``3 x`` and ``10 x``: as many steps.
"""

from dataclasses import replace
from functools import partial

import minivit
from minivit.model import Model
from studies.runner.run import loaded, operations
from studies.runner.survey import Figures, Survey
from studies.shared.lengths import TIMES, after, named, scored
from vitlab.training import Recipe

SEEDS = range(5)
KINDS = ("000", "001", "010", "011", "100", "110", "111", "begin", "wide", "flat 100", "flat 001")
STEPS = 400
RECIPE = Recipe(batch_size=64, average=0.9)


def network(kind: str) -> Model:
    bits = {"wide": "111", "begin": "111"}.get(kind, kind.removeprefix("flat "))
    replaced = "ac" if kind == "begin" else "ca"
    return minivit.create(
        "alternet_32px",
        image_size=16,
        stages=tuple(replaced if bit == "1" else "cc" for bit in bits),
        widths=(16, 16, 16) if "flat" in kind else (10, 22, 40) if kind == "wide" else (8, 16, 32),
        heads=(2, 2, 2) if "flat" in kind else (1, 2, 4),
    )


def measured(kind: str, times: int) -> Figures:
    """Scores after ``times`` as many steps; cost."""
    model, recipe = network(kind), replace(RECIPE, steps=times * STEPS)
    training = partial(scored, partial(network, kind), loaded("SHAPES", size=16), recipe)
    return after(times, training, SEEDS, "hybrids", f"{kind}, shapes") | {
        "steps": recipe.steps,
        "parameters": sum(p.numel() for p in model.parameters()),
        "operations": operations(model),
    }


ROWS = {named(f"{kind}, shapes", n): partial(measured, kind, n) for kind in KINDS for n in TIMES}
STUDY = Survey("hybrids", ROWS, SEEDS)
