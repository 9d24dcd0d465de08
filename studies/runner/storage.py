"""Where results are kept, how they are written, and where they come from."""

import json
import math
import os
import platform
import subprocess
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import torch

from minivit.files import atomic_write
from vitlab.extras import has_bfloat16

ROOT = Path(__file__).resolve().parents[2]
Figures = dict[str, Any]


@dataclass(frozen=True)
class Store:
    """Where results and weights are kept, and the ``command`` that trains, for model cards."""

    root: Path = ROOT
    command: str | None = None

    def table(self, study: str) -> Path:
        return self.root / "book/results" / f"{study}.json"

    def result(self, key: str) -> Path:
        return self.root / "book/results/runs" / f"{key}.json"

    def folder(self, key: str) -> Path:
        """The folder of a training: state, weights, card."""
        return self.root / "studies/runs" / key


HERE = Store()


def write(figures: Figures, path: Path) -> None:
    """Writes figures, which must be finite, to a JSON file, completely or not at all."""
    text = json.dumps(figures, indent=1, allow_nan=False) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as scratch:
        scratch.write_text(text)


@cache
def commit() -> str:
    """The commit this process runs, if this is called early; + where code had changes."""
    git = ["git", "-C", str(ROOT)]
    name = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True)
    code = ["--", ".", ":!book/results"]  # which a study before this one may have written
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", *code], capture_output=True)
    return name.stdout.strip() + "+" * (changed.returncode == 1)


def provenance() -> Figures:
    """Where, when and by which code something is computed."""
    computes = "bfloat16" if has_bfloat16(torch.device("cpu")) else "no bfloat16"
    if torch.cuda.is_available():
        computes = torch.cuda.get_device_name()
    return {
        "commit": commit(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {computes}",
        "torch": torch.__version__,
        "date": date.today().isoformat(),
    }


def same_machine(old: Figures, new: Figures) -> bool:
    """Whether results must agree exactly: one kind of machine rounds sums one way."""
    return all(old[name] == new[name] for name in ("machine", "torch"))


def differences(old: Any, new: Any, near: dict[str, float], path: str = "") -> list[str]:
    """Where two structures of numbers, text, lists and dictionaries differ, a line each.

    ``near`` is what :func:`math.isclose` takes: ``rel_tol``, ``abs_tol``.
    """
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        keys = list(old)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        keys = list(range(len(old)))
    elif isinstance(old, float) and isinstance(new, float | int):
        return [] if math.isclose(old, new, **near) else [f"{path}: {old:.6g}, now {new:.6g}"]
    else:
        return [] if old == new else [f"{path}: {old}, now {new}"]
    return [line for k in keys for line in differences(old[k], new[k], near, f"{path} {k}")]
