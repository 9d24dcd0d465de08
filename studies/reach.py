"""How far must attention see, and must it depend on the image?

ViTs that read the digits pixel by pixel, 64 tokens in a grid of 8 x 8, with attention that sees all
of it, a neighbourhood, or a window; or whose mixing weights are learned but the same in all images,
with 1 head and about as many parameters as attention, or with as many heads and more parameters. On
all digits and, for some, on a tenth of them; five seeds each, at the rate that did best on the
validation part in 300 steps; the ``wider`` row tries one more, and ``more`` rows have five more
seeds, since the first five left open which of two is better. ``curvature`` rows: of three of them
the share of negative curvature and the largest eigenvalue early in training, after 20 steps, on 64
training images.
"""

from dataclasses import replace
from typing import Any

import torch

from studies.runner.survey import Figures, Survey
from studies.shared.digit_models import fraction_of, plain
from studies.shared.reach import MIXING, vit
from vitlab.data import Data, load_data
from vitlab.data.dataset import Split
from vitlab.instruments.density import density
from vitlab.training import Recipe, train
from vitlab.training.evaluate import evaluate
from vitlab.training.run import Run

SEEDS = range(5)
RATES = (3e-3, 1e-2, 3e-2)
WIDER = 1e-1  # where the last of them won
STEPS = {"all": 600, "tenth": 300}
FEW = ("global", "windows", "shifted windows")  # also trained on a tenth
CURVED = ("global", "5 x 5", "3 x 3")
MORE = {"global": 3e-2, "5 x 5": 1e-2}  # seeds 5 to 9, at the rates of the first five
RECIPE = Recipe(batch_size=64, average=0.9)
EARLY, IMAGES = 20, 64


def measure(row: str, rehearsal: bool) -> Figures:
    """The figures of one row, lists over the seeds."""
    mixing, _, amount = row.partition(", ")
    if amount == "curvature":
        return plain(curvature(mixing, rehearsal))
    short = 2 if rehearsal else STEPS["tenth"]
    if amount == "wider":
        return plain({"search": {str(WIDER): trained(mixing, "all", 0, short, WIDER)[1]}})
    rates = RATES[:1] if rehearsal else RATES
    steps = 2 if rehearsal else STEPS["tenth" if amount == "tenth" else "all"]
    if amount == "more":
        more = range(5, 6 if rehearsal else 10)
        return plain(scores(mixing, amount, more, steps, MORE[mixing]))
    search = {rate: trained(mixing, amount, 0, short, rate)[1] for rate in rates}
    rate = max(search, key=lambda r: search[r])
    return plain(
        {"parameters": sum(p.numel() for p in vit(mixing).parameters()), "rate": rate}
        | {"search": {str(rate): accuracy for rate, accuracy in search.items()}}
        | scores(mixing, amount, SEEDS[: 1 if rehearsal else 5], steps, rate)
    )


def scores(mixing: str, amount: str, seeds: range, steps: int, rate: float) -> Figures:
    """Lists over the seeds."""
    rows = [trained(mixing, amount, seed, steps, rate) for seed in seeds]
    names = ("train_loss", "validation", "accuracy")
    return {name: list(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}


def digits(amount: str, seed: int) -> Data:
    """All digits, or a tenth of them ten times over: training scores after each epoch."""
    whole = load_data("DIGITS")
    if amount != "tenth":
        return whole
    few = fraction_of(whole, 0.1, seed)
    many = Split(few.train.images.repeat(10, 1, 1, 1), few.train.labels.repeat(10))
    return replace(few, train=many)


def trained(
    mixing: str, amount: str, seed: int, steps: int, rate: float
) -> tuple[float, float, float]:
    """Loss on the training part, accuracy on the validation and the test part."""
    torch.manual_seed(seed)
    model, data = vit(mixing), digits(amount, seed)
    done = train(model, data, replace(RECIPE, steps=steps, learning_rate=rate, seed=seed))
    known, chosen = evaluate(model, data.train), evaluate(model, data.validation)
    return -known.log_likelihood, chosen.accuracy, done.test.accuracy


def curvature(mixing: str, rehearsal: bool) -> Figures:
    """Of models early in training, shares of negative curvature and largest eigenvalues."""
    found: dict[str, Any] = {"negative": [], "negative_half": [], "top": []}
    for seed in SEEDS[: 1 if rehearsal else 5]:
        torch.manual_seed(seed)
        recipe = replace(RECIPE, steps=STEPS["all"], learning_rate=RATES[0], seed=seed)
        run = Run(vit(mixing), load_data("DIGITS"), recipe)
        while run.step < (1 if rehearsal else EARLY):
            run.advance()
        part = run.data.train
        chosen = torch.linspace(0, len(part) - 1, 4 if rehearsal else IMAGES).round().long()
        images = (part.images[chosen].float() / 255 - run.mean) / run.std
        probes, steps = (2, 2) if rehearsal else (2, 15)
        how: dict[str, Any] = {"probes": probes, "steps": steps, "label_smoothing": 0.1}
        early = density(run.model, images, part.labels[chosen], seed=1 + seed, **how)
        found["negative"].append(early.negative.mean)
        found["negative_half"].append(early.negative.half)
        found["top"].append(early.points.max().item())
    return found


STUDY = Survey(
    "reach",
    (
        *(f"{mixing}, all" for mixing in MIXING),
        *(f"{mixing}, tenth" for mixing in FEW),
        *(f"{mixing}, more" for mixing in MORE),
        *(f"{mixing}, curvature" for mixing in CURVED),
        "global, wider",
    ),
    measure,
    seeds=SEEDS,
)
