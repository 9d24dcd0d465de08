"""One training: what it is of, and what came of it."""

import hashlib
import json
import os
import platform
import subprocess
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

import minivit
from minivit.data import Data, Split, load_data
from minivit.hub.files import replacing
from minivit.networks.model import Model
from minivit.networks.patches import pair
from minivit.training import Recipe, evaluate, train
from minivit.training.defaults import has_bfloat16

ROOT = Path(__file__).resolve().parents[1]
TRAINED_ON = 5000  # pictures of the training part that a model is scored on, unaltered
# Pictures of the validation part that an epoch is scored on, where a part of the training pictures
# makes epochs short: scoring them on all would take longer than training.
WATCHED = 200


@dataclass(frozen=True)
class Run:
    """One training: a model, data, a recipe.

    Args:
        model: One of :func:`minivit.models`.
        changes: Fields of its configuration that differ.
        recipe: Its ``seed`` draws the first weights too.
        data: What :func:`~minivit.data.load_data` takes.
        fraction: Share of the training pictures; smaller ones are part of larger ones.
        random_labels: Whether each training picture has a class drawn at random.
    """

    model: str
    changes: dict[str, Any] = field(default_factory=dict)
    recipe: Recipe = field(default_factory=Recipe)
    data: str = "CIFAR10"
    fraction: float = 1.0
    random_labels: bool = False

    @property
    def key(self) -> str:
        """The hash of everything above."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]

    def load(self) -> Data:
        """The data as this run sees it."""
        data = _data(self.data, self.fraction)
        if not self.random_labels:
            return data
        draws = torch.Generator().manual_seed(self.recipe.seed)
        labels = torch.randint(len(data.classes), data.train.labels.shape, generator=draws)
        parts = {"train": Split(data.train.images, labels), "validation": data.validation}
        return Data.of(data.name, data.classes, parts | {"test": data.test}, data.licence)

    def create(self) -> Model:
        """The untrained model."""
        torch.manual_seed(self.recipe.seed)
        return minivit.create(self.model, **self.changes)


@cache
def _data(name: str, fraction: float) -> Data:
    return load_data(name, fraction=fraction)


@dataclass(frozen=True)
class Place:
    """Where results and weights are kept.

    Args:
        root: The repository, or another folder in its stead.
        command: What is typed to train, for model cards.
        pictures: How many of each part count. Default: all.
    """

    root: Path = ROOT
    command: str | None = None
    pictures: int | None = None

    def result(self, key: str) -> Path:
        """The file of a run's result."""
        return self.root / "book/results/runs" / f"{key}.json"

    def folder(self, key: str) -> Path:
        """The folder of a training: state, weights, card."""
        return self.root / "studies/runs" / key


HERE = Place()


def train_one(run: Run, place: Place = HERE, keep: bool = True) -> dict[str, Any]:
    """Trains one model, scores it and writes the result down.

    Args:
        run: The training; it goes on where it was interrupted.
        place: Where results and weights are kept.
        keep: Whether to write anything; a check of a result does not.
    """
    torch.set_num_threads(1)
    about = provenance()  # before the training: the repository may move on meanwhile
    data, model = run.load(), run.create()
    if place.pictures is not None:
        train_, validation, test = (
            spread(part, place.pictures) for part in (data.train, data.validation, data.test)
        )
        data = replace(data, train=train_, validation=validation, test=test)
    few = spread(data.validation, WATCHED)
    watched = data if run.fraction == 1 else replace(data, validation=few)
    folder = place.folder(run.key) if keep else None
    scores, diverged = None, None
    try:
        trained = train(model, watched, run.recipe, out=folder, resume=keep, command=place.command)
    except FloatingPointError as error:  # a learning rate can be too large: that is a result too
        curve, seconds, diverged = [], None, str(error)
    else:
        whole = trained.validation if watched is data else evaluate(model, data.validation)
        scores = {
            "train": asdict(evaluate(model, spread(data.train, TRAINED_ON))),
            "validation": asdict(whole),
            "test": asdict(trained.test),
        }
        curve, seconds = trained.lines, round(trained.seconds, 1)
    found = {
        "key": run.key,
        "run": asdict(run),
        "pictures": len(data.train),
        "parameters": sum(p.numel() for p in model.parameters()),
        "operations": operations(model),
        "scores": scores,
        "diverged": diverged,
        "curve": curve,
        "seconds": seconds,
        **about,
    }
    if keep:
        store(found, place.result(run.key))
    return found


def spread(split: Split, pictures: int) -> Split:
    """At most so many pictures of a part, evenly apart: it may lie in the order of its classes."""
    places = torch.linspace(0, len(split) - 1, min(pictures, len(split)))
    return split[places.round().long()]


def operations(model: Model) -> int:
    """Multiply-adds of one forward pass of one picture."""
    size = pair(model.config.image_size)
    images = torch.zeros(1, model.config.channels, *size)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model.eval()(images)
    return counter.get_total_flops() // 2


def store(found: dict[str, Any], path: Path) -> None:
    """Writes figures to a JSON file, whole or not at all.

    Raises:
        ValueError: One of them is not finite, and JSON has no word for it.
    """
    text = json.dumps(found, indent=1, allow_nan=False) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as scratch:
        scratch.write_text(text)


@cache
def commit() -> str:
    """The code that this process runs, if this is asked early; + where files had changes."""
    git = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=12", "--exclude=*"]
    found = subprocess.run([*git, "--dirty=+"], capture_output=True, text=True)
    return found.stdout.strip()


def provenance() -> dict[str, Any]:
    """Where, when and by which code something is computed."""
    half = "bfloat16" if has_bfloat16(torch.device("cpu")) else "no bfloat16"
    return {
        "commit": commit(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {half}",
        "torch": torch.__version__,
        "date": date.today().isoformat(),
    }
