"""``minivit export`` and ``minivit models``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

import minivit
from vitlab.commands.command import ModelName, OfModel, checked, open_model
from vitlab.convert.onnx import export


@dataclass(kw_only=True)
class Export(OfModel):
    """Write a trained model for programs without Python, and check that its answers agree."""

    model: Positional[ModelName]  # as for `predict`: a name, a folder, a file, timm:NAME, ...
    to: Literal["onnx"] = "onnx"  # the format
    out: Path  # a .onnx file

    def run(self, typed: str) -> int:
        out = checked(self.out, ".onnx")
        difference = export(open_model(self.model, self.size), out)
        print(f"logits differ by at most {difference:.1e}; written to {out}")
        return 0


@dataclass
class Models:
    """List the models."""

    def run(self, typed: str) -> int:
        print(minivit.models())
        return 0
