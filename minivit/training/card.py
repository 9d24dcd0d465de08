"""The model card: what a reader must know of a trained model to trust it as far as it goes."""

import platform
from dataclasses import asdict, dataclass
from typing import Any

import torch

import minivit
from minivit.data.dataset import Data
from minivit.hub.about import fields_of
from minivit.hub.families import family
from minivit.networks.model import Model
from minivit.training.evaluate import Scores
from minivit.training.recipe import Recipe


@dataclass(frozen=True)
class Results:
    """What a training came to.

    Args:
        validation: Scores on the part that was held out for choices.
        test: Scores on the test part, which was used this once.
        lines: What the log says of each epoch.
        steps: Steps taken.
        seconds: How long it took.
    """

    validation: Scores
    test: Scores
    lines: list[dict[str, Any]]
    steps: int
    seconds: float


def card(
    model: Model, data: Data, recipe: Recipe, results: Results, command: str | None = None
) -> str:
    """Writes a model card in Markdown.

    After Mitchell et al. (2019), "Model Cards for Model Reporting", as far as numbers go.

    Args:
        model: The trained model.
        data: What it was trained on.
        recipe: How.
        results: What came of it.
        command: What was typed. Default: the card says that it was a call from Python.
    """
    kind, parameters = family(model.config), sum(p.numel() for p in model.parameters())
    device = next(model.parameters()).device.type
    channels, height, width = data.train.images.shape[1:]
    colour = {1: "grey", 3: "colour"}[channels]
    rows = [
        ["part", "pictures", "accuracy", "mean log-likelihood", "calibration error"],
        *(_scores(part, getattr(results, part)) for part in ("validation", "test")),
    ]
    curve = [["epoch", "step", "loss", "accuracy", "validation accuracy", "log-likelihood"]]
    for line in results.lines:
        held_out = line["validation"]
        shares = f"{line['loss']:.4f}", f"{line['accuracy']:.4f}", f"{held_out['accuracy']:.4f}"
        likely = f"{held_out['log_likelihood']:.4f}"
        curve.append([str(line["epoch"]), str(line["step"]), *shares, likely])
    return "\n".join([
        f"# {kind} trained on {_escaped(data.name)}", "",
        f"{parameters:,} parameters; {height} x {width} pixels in {colour}; "
        f"{len(data.classes)} classes: {', '.join(map(_escaped, data.classes))}.", "",
        "## Scores", "",
        "The validation part was held out of training, for choices. The test part was scored once, "
        "at the end. The weights are "
        + (f"the moving average (decay {recipe.average:g}) at" if recipe.average else "those after")
        + " the last step; no epoch was chosen.", "",
        *_table(rows), "",
        "The calibration error is the expected one in 15 bins (Guo et al. 2017).", "",
        "## Made by", "",
        f"    {command}" if command else "A call of `minivit.training.train`.", "",
        f"{results.steps:,} steps in {results.seconds:.0f} s on {device}, "
        f"{torch.get_num_threads()} threads, {platform.machine()}; minivit {minivit.__version__}, "
        f"torch {torch.__version__}; seed {recipe.seed}.", "",
        "## Data", "",
        f"{data.name}: {len(data.train):,} pictures to train on, {len(data.validation):,} to "
        f"validate, {len(data.test):,} to test; {len(data.skipped)} damaged ones left out. "
        f"Licence of the pictures: {data.licence or 'none stated'}. Mean {_numbers(data.mean)} and "
        f"deviation {_numbers(data.std)} by channel.", "",
        "## Recipe", "", *_fields(_used(recipe)), "",
        "## Model", "", f"    {kind}", *_fields(fields_of(model.config)), "",
        "## Curve", "",
        "Loss and accuracy are of the pictures as they were altered for training.", "",
        *_table(curve), "",
    ])  # fmt: skip


def _scores(part: str, scores: Scores) -> list[str]:
    numbers = (scores.accuracy, scores.log_likelihood, scores.calibration_error)
    return [part, f"{scores.pictures:,}", *(f"{number:.4f}" for number in numbers)]


def _escaped(name: str) -> str:
    """A name in which nothing is Markdown's for a new line or a column."""
    return name.replace("|", "\\|").replace("\n", "\\n").replace("\r", "\\r")


def _table(rows: list[list[str]]) -> list[str]:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return [lines[0], f"|{'---|' * len(rows[0])}", *lines[1:]]


def _fields(fields: dict[str, Any]) -> list[str]:
    return [f"    {name} = {value!r}" for name, value in fields.items() if value is not None]


def _used(recipe: Recipe) -> dict[str, Any]:
    """The recipe's fields, without the epochs where they did not count."""
    fields = asdict(recipe)
    if recipe.steps is not None or recipe.minutes is not None:
        del fields["epochs"]
    return fields


def _numbers(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:.4f}" for value in values)
