"""The file that a benchmark leaves."""

import json
import platform
from pathlib import Path
from typing import Any

import torch

from minivit.files import replacing


def write(path: Path, rows: list[dict[str, Any]], settings: dict[str, float]) -> None:
    """Writes a benchmark's rows to a JSON file, with its settings and the machine they are of."""
    processor = f"{platform.machine()}, {torch.backends.cpu.get_cpu_capability()}"
    about = {"torch": torch.__version__, "processor": processor} | settings
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as scratch:
        scratch.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")
    print(f"\nwritten to {path}")
