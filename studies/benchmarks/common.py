"""What benchmarks share: their options, ratios of times, and the file that each leaves."""

import argparse
import json
import os
import platform
from pathlib import Path
from typing import Any

import numpy as np
import torch

from minivit.files import replacing


def parser(description: str | None, name: str) -> argparse.ArgumentParser:
    """A command line with the threads to use, and a file for the results."""
    options = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    options.add_argument("--threads", type=int, default=os.cpu_count())
    options.add_argument("--out", type=Path, default=Path(f"_build/bench/{name}.json"))
    return options


def interval(ratios: np.ndarray) -> tuple[float, float]:
    """95 % bootstrap interval of the median."""
    draws = np.random.default_rng(0).choice(ratios, (2000, len(ratios)))
    low, high = np.quantile(np.median(draws, axis=1), [0.025, 0.975])
    return float(low), float(high)


def write(path: Path, rows: list[dict[str, Any]], settings: dict[str, float]) -> None:
    """Writes a benchmark's rows to a JSON file, with its settings and the machine they are of."""
    processor = f"{platform.machine()}, {torch.backends.cpu.get_cpu_capability()}"
    about = {"torch": torch.__version__, "processor": processor} | settings
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as scratch:
        scratch.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")
    print(f"\nwritten to {path}")
