"""The model card of a training, after Mitchell et al. (2019), "Model Cards for Model Reporting"."""

import platform
from dataclasses import asdict
from typing import Any

import torch

import minivit
from minivit.families import family
from minivit.files import fields_of
from vitlab.rendering import rendered
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
    settings = asdict(run.recipe)
    if run.recipe.steps or run.recipe.minutes:
        del settings["epochs"]  # which did not count
    functions = {f.__name__: f for f in (by_class, fields_of, frozen, repr, text)}
    return rendered(
        "card.md",
        **functions,
        run=run,
        results=results,
        kind=family(run.model.config),
        parameters=sum(p.numel() for p in run.model.parameters()),
        settings=settings,
        command=command,
        machine=f"{torch.get_num_threads()} threads, {platform.machine()}",
        versions=f"minivit {minivit.__version__}, torch {torch.__version__}",
        advice=advice(run, start),
    )


def text(cell: Any) -> str:
    """A number rounded, and a name without Markdown's marks for a new column or line."""
    text = f"{cell:.4f}" if isinstance(cell, float) else str(cell)
    return text.replace("|", "\\|").replace("\n", "\\n").replace("\r", "\\r")
