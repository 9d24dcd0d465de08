"""The measurements of the book's claims, a file for each kind of instrument, and asking for one."""

import math
import time
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import torch

from vitlab.claims import measuring
from vitlab.claims.measuring import MEASUREMENTS, Measured, NotApplicable, Subject
from vitlab.claims.rules import half_width

for file in iter_modules(__path__):
    import_module(f"{__name__}.{file.name}")  # which adds its measurements to MEASUREMENTS


def chosen(names: str) -> list[str]:
    """Claims given as ``"R46,V33"``, in that order; all that are measured where none is given."""
    wanted = [name.strip().upper() for name in names.split(",") if name.strip()]
    if unknown := [name for name in wanted if name not in MEASUREMENTS]:
        known = ", ".join(sorted(MEASUREMENTS))
        raise ValueError(f"expected any of {known}: got {', '.join(unknown)}")
    return list(dict.fromkeys(wanted)) or list(MEASUREMENTS)


def ask(claim: str, subject: Subject, seed: int, quick: bool = False) -> dict[str, Any]:
    """The answer to one claim: its row of an audit, without a figure if it must be."""
    row: dict[str, Any] = {"id": claim, "figure": None, "low": None, "high": None}
    row |= {"count": 0, "untrained": None, "baselines": {}, "curves": {}}
    row |= {"reason": "", "seconds": 0.0}
    if quick and MEASUREMENTS[claim].slow:
        return row | {"state": "left out", "reason": "it takes long, so --quick leaves it out"}
    began = time.monotonic()
    devices = [subject.images.device] if subject.images.is_cuda else []
    try:
        with torch.random.fork_rng(devices):
            torch.manual_seed(seed)
            row |= _figures(MEASUREMENTS[claim].measure(subject)) | {"state": "measured"}
    except NotApplicable as error:
        row |= {"state": "cannot be asked", "reason": measuring.first_line(error)}
    except Exception as error:
        reason = f"an error in the audit: {type(error).__name__}: {error}"
        if measuring.out_of_memory(error):
            reason = "out of memory: try a smaller --batch-size"
        row |= {"state": "failed", "reason": reason}
    return row | {"seconds": round(time.monotonic() - began, 2)}


def _figures(result: Measured) -> dict[str, Any]:
    """A measurement as JSON takes it, which knows no NaN."""
    figure = float(result.figure)
    curves = {
        name: [x if math.isfinite(x) else None for x in line.tolist()]
        for name, line in result.curves.items()
    }
    baselines = {k: float(x) for k, x in result.baselines.items() if math.isfinite(x)}
    row: dict[str, Any] = {"figure": figure, "baselines": baselines, "curves": curves}
    if before := result.untrained and _figures(result.untrained):
        row["untrained"] = {name: before.get(name) for name in ("figure", "low", "high")}
    if result.each is not None and len(result.each) > 1:
        half = half_width(result.each.detach().cpu().double().numpy())
        row |= {"low": figure - half, "high": figure + half, "count": len(result.each)}
    return row
