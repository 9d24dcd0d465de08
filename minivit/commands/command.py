"""What the commands share: their options, and how they open data and models."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import minivit
from minivit.data.loading import Data, load_data
from minivit.hub.files import MODEL
from minivit.networks.model import Model


@dataclass(kw_only=True)
class Command:
    device: Literal["auto", "cuda", "mps", "cpu"] = "auto"  # auto is the first there is
    threads: int | None = None  # processor threads (None: torch's choice)


def complain(error: object) -> int:
    """Prints an error; gives the exit code for bad input."""
    print(f"error: {error}", file=sys.stderr)
    return 2


def load(source: str, **options: Any) -> Data:
    """Loads data, and reports what was left out."""
    data = load_data(source, **options)
    for picture in data.skipped:
        print(f"left out: {picture}", file=sys.stderr)
    return data


def open_model(name: str) -> Model:
    """A model from a file, from the folder of a training, or by name."""
    path = Path(name)
    model = minivit.load(str(path / MODEL) if path.is_dir() else name)
    if getattr(model, "preprocess", None) is None:
        raise ValueError(f"{name} does not say how its images are prepared: expected preprocess")
    return model
