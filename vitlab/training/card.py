"""The model card of a training, after Mitchell et al. (2019), "Model Cards for Model Reporting"."""

import platform
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch

import minivit
from minivit.families import family
from minivit.files import fields_of
from vitlab.training.evaluate import Results, by_class
from vitlab.training.optimiser import frozen
from vitlab.training.run import Run

FEW = 500  # steps: the shortest recipe for a data set of ours takes 570


def advice(run: Run, start: str | None) -> str:
    """What to try instead of a short training from random weights; nothing for others."""
    if start or run.steps >= FEW:
        return ""
    few = f"\n\n{run.steps} steps are few for weights that begin at random"
    return f"{few}: `--from cifar10_vit` begins with trained ones."


def card(run: Run, results: Results, command: str | None, start: str | None) -> str:
    """A model card in Markdown."""
    model, data, recipe = run.model, run.data, run.recipe
    kind, (channels, height, width) = family(model.config), data.train.images.shape[1:]
    average = f"the moving average (decay {run.average.at(run.step - 1):.3g}) at"
    parts = ", ".join(frozen(model))
    still = f"\n\nFrozen, as it was before: {parts}." if parts else ""
    settings = asdict(recipe)
    if recipe.steps or recipe.minutes:
        del settings["epochs"]  # which did not count
    mean, std = (", ".join(f"{x:.4f}" for x in values) for values in (data.mean, data.std))
    scores = [
        [part, f"{s.pictures:,}", s.accuracy, s.log_likelihood, s.calibration_error]
        for part, s in (("validation", results.validation), ("test", results.test))
    ]
    return f"""\
# {kind} trained on {_text(data.name)}

{sum(p.numel() for p in model.parameters()):,} parameters; {height} x {width} pixels in \
{"grey" if channels == 1 else "colour"}; \
{len(data.classes)} classes: {", ".join(map(_text, data.classes))}.

## Scores

The validation part was held out of training, for choices. The test part was scored once, at the \
end. The weights are {average if recipe.average else "those after"} the last step; no epoch was \
chosen.

{table(["part", "images", "accuracy", "mean log-likelihood", "calibration error"], *scores)}

The calibration error is the expected one in 15 bins (Guo et al. 2017).

Of the test part, by class:

{table(*by_class(results.confusion, data.classes))}

## Made by

{f"    {command}" if command else "A call of `vitlab.training.train`."}

{results.steps:,} steps in {results.seconds:.0f} s on {run.device.type}, \
{torch.get_num_threads()} threads, {platform.machine()}; minivit {minivit.__version__}, \
torch {torch.__version__}; seed {recipe.seed}.{advice(run, start)}

## Data

{data.name}: {len(data.train):,} images to train on, {len(data.validation):,} to validate, \
{len(data.test):,} to test; {len(data.skipped)} damaged ones left out. Licence of the images: \
{data.licence or "none stated"}. Mean {mean} and standard deviation {std} by channel.

## Recipe

{_fields(settings)}

## Model

    {kind}
{_fields(fields_of(model.config))}{still}
"""


def _text(cell: Any) -> str:
    """A number rounded, and a name without Markdown's marks for a new column or line."""
    text = f"{cell:.4f}" if isinstance(cell, float) else str(cell)
    return text.replace("|", "\\|").replace("\n", "\\n").replace("\r", "\\r")


def table(heads: Sequence[Any], *rows: Sequence[Any]) -> str:
    """A table in Markdown, its numbers with four digits after the point."""
    head, *lines = [f"| {' | '.join(map(_text, row))} |" for row in (heads, *rows)]
    return "\n".join([head, f"|{'---|' * len(heads)}", *lines])


def _fields(fields: dict[str, Any]) -> str:
    return "\n".join(f"    {key} = {value!r}" for key, value in fields.items() if value is not None)
