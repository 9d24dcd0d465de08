"""Where in a ResNet does attention help, if it does?

ResNets of six blocks in three stages; ``1`` stands for a stage whose last block is one of
attention: ``001`` has it in the last stage alone. ``begin`` has attention at the beginning of all
stages, ``wide`` is ``111`` with as many weights as ``000``, in ``flat`` networks all stages are
equally wide.
"""

import time
from dataclasses import replace
from functools import partial

import minivit
from minivit.model import Model
from studies.runner.run import loaded, operations
from studies.runner.survey import Figures, Survey, over_seeds
from studies.shared.training import fitted, scores_of, search
from vitlab.training import Recipe

SEEDS = range(5)
RATES = (3e-3, 1e-2, 3e-2)
KINDS = ("000", "001", "010", "011", "100", "110", "111", "begin", "wide", "flat 100", "flat 001")
RECIPE = Recipe(steps=400, batch_size=64, average=0.9)


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


def trained(kind: str, seed: int, rate: float) -> Figures:
    """Scores of a trained network, and the seconds of its training."""
    data, start = loaded("SHAPES", size=16), time.process_time()
    recipe = replace(RECIPE, learning_rate=rate)
    model, right = fitted(partial(network, kind), data, recipe, seed)
    seconds = time.process_time() - start
    return {"seconds_of_training": seconds, "accuracy": right} | scores_of(model, data)


def measure(kind: str) -> Figures:
    first = {rate: trained(kind, 0, rate) for rate in RATES}
    rate, figures = search(lambda rate: first[rate]["validation"], RATES)
    model = network(kind)
    figures["parameters"] = sum(p.numel() for p in model.parameters())
    figures["operations"] = operations(model)
    others = (trained(kind, seed, rate) for seed in SEEDS[1:])
    return figures | over_seeds([first[rate], *others])


STUDY = Survey("hybrids", {f"{kind}, shapes": partial(measure, kind) for kind in KINDS}, SEEDS)
