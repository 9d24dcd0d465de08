"""Where in a ResNet does attention help, if it does?

ResNets of six blocks in three stages, whose last, or first, convolution block of some stages is a
block of attention, with the choices of stages at which AlterNet's rules arrive step by step. ``1``
stands for a stage with attention at its end: ``001`` has it in the last stage alone. ``wide`` is
``111`` with as many weights as ``000``, ``begin`` has attention at the beginning of all stages; in
``flat`` networks all stages are equally wide. Generated shapes of 16 pixels; five seeds each, at
the rate that did best on the validation part.
"""

import time
from dataclasses import replace
from functools import cache, partial

import minivit
from minivit.model import Model
from studies.runner.run import operations
from studies.runner.survey import Figures, Survey
from studies.shared.figures import over_seeds, plain
from studies.shared.training import trained as learn
from vitlab.data import Data, load_data
from vitlab.training import Recipe
from vitlab.training.evaluate import evaluate

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


@cache
def shapes() -> Data:
    """Generated images, which take longer to draw than a step of training."""
    return load_data("SHAPES", size=16)


def trained(kind: str, seed: int, rate: float) -> Figures:
    """Scores of a trained network, and the seconds of its training."""
    data, start = shapes(), time.process_time()
    recipe = replace(RECIPE, learning_rate=rate)
    model, test = learn(partial(network, kind), data, recipe, seed)
    return {
        "seconds_of_training": time.process_time() - start,
        "train_loss": -evaluate(model, data.train).log_likelihood,
        "validation": evaluate(model, data.validation).accuracy,
        "accuracy": test,
    }


def measure(row: str) -> Figures:
    kind = row.removesuffix(", shapes")
    search = {rate: trained(kind, 0, rate) for rate in RATES}
    rate = max(search, key=lambda r: search[r]["validation"])
    model = network(kind)
    figures = {
        "parameters": sum(p.numel() for p in model.parameters()),
        "operations": operations(model),
        "search": {str(r): scores["validation"] for r, scores in search.items()},
        "rate": rate,
    }
    # The first seed was trained at this rate already.
    others = (trained(kind, seed, rate) for seed in SEEDS[1:])
    return plain(figures | over_seeds([search[rate], *others]))


STUDY = Survey("hybrids", [f"{kind}, shapes" for kind in KINDS], measure, seeds=SEEDS)
