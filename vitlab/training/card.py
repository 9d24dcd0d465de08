"""The model card of a training, after Mitchell et al. (2019), "Model Cards for Model Reporting"."""

import platform
from dataclasses import asdict
from typing import Any

import torch

import minivit
from minivit.families import family
from minivit.files import fields_of
from minivit.model import Model
from vitlab.data.dataset import Data
from vitlab.training.confusion import Confusion, by_class
from vitlab.training.evaluate import Results
from vitlab.training.freezing import frozen
from vitlab.training.recipe import Recipe


def card(
    model: Model,
    data: Data,
    recipe: Recipe,
    results: Results,
    matrix: Confusion,
    command: str | None = None,
) -> str:
    """Writes a model card in Markdown.

    Args:
        matrix: The confusion matrix of the test part.
        command: The command line of the training. Default: the card says it was called from Python.
    """
    kind = family(model.config)
    parameters = sum(p.numel() for p in model.parameters())
    device = next(model.parameters()).device.type
    channels, height, width = data.train.images.shape[1:]
    weights = (
        f"the moving average (decay {recipe.average:g}) at" if recipe.average else "those after"
    )
    return f"""\
# {kind} trained on {_escaped(data.name)}

{parameters:,} parameters; {height} x {width} pixels in {"grey" if channels == 1 else "colour"}; \
{len(data.classes)} classes: {", ".join(map(_escaped, data.classes))}.

## Scores

The validation part was held out of training, for choices. The test part was scored once, at the \
end. The weights are {weights} the last step; no epoch was chosen.

{_scores(results)}

The calibration error is the expected one in 15 bins (Guo et al. 2017).

Of the test part, by class:

{_table([[_escaped(cell) for cell in row] for row in by_class(matrix, data.classes)])}

## Made by

{f"    {command}" if command else "A call of `vitlab.training.train`."}

{results.steps:,} steps in {results.seconds:.0f} s on {device}, {torch.get_num_threads()} threads, \
{platform.machine()}; minivit {minivit.__version__}, torch {torch.__version__}; seed {recipe.seed}.

## Data

{data.name}: {len(data.train):,} images to train on, {len(data.validation):,} to validate, \
{len(data.test):,} to test; {len(data.skipped)} damaged ones left out. Licence of the images: \
{data.licence or "none stated"}. Mean {_numbers(data.mean)} and standard deviation \
{_numbers(data.std)} by channel.

## Recipe

{_fields(_used(recipe))}

## Model

    {kind}
{_fields(fields_of(model.config))}{_still(model)}

## Curve

Loss and accuracy are those of the augmented images.

{_curve(results)}
"""


def _escaped(name: str) -> str:
    """A name without Markdown's marks for a new column or line."""
    return name.replace("|", "\\|").replace("\n", "\\n").replace("\r", "\\r")


def _scores(results: Results) -> str:
    rows = [["part", "images", "accuracy", "mean log-likelihood", "calibration error"]]
    for part, scores in (("validation", results.validation), ("test", results.test)):
        numbers = (scores.accuracy, scores.log_likelihood, scores.calibration_error)
        rows.append([part, f"{scores.pictures:,}", *(f"{number:.4f}" for number in numbers)])
    return _table(rows)


def _curve(results: Results) -> str:
    rows = [["epoch", "step", "loss", "accuracy", "validation accuracy", "log-likelihood"]]
    for line in results.lines:
        held_out = line["validation"]
        numbers = (line["loss"], line["accuracy"], held_out["accuracy"], held_out["log_likelihood"])
        rows.append([str(line["epoch"]), str(line["step"]), *(f"{n:.4f}" for n in numbers)])
    return _table(rows)


def _table(rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], f"|{'---|' * len(rows[0])}", *lines[1:]])


def _fields(fields: dict[str, Any]) -> str:
    return "\n".join(f"    {key} = {value!r}" for key, value in fields.items() if value is not None)


def _used(recipe: Recipe) -> dict[str, Any]:
    """The recipe's fields, without the epochs where they did not count."""
    fields = asdict(recipe)
    if recipe.steps is not None or recipe.minutes is not None:
        del fields["epochs"]
    return fields


def _still(model: Model) -> str:
    parts = frozen(model)
    return f"\n\nFrozen, as it was before: {', '.join(parts)}." if parts else ""


def _numbers(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:.4f}" for value in values)
