"""``minivit eval``, ``export`` and ``models``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

import minivit
from minivit.patches import pair
from vitlab.calls import expect
from vitlab.commands import command
from vitlab.commands.command import Command, ModelName, OfModel
from vitlab.convert.dinov2 import INSTALL, NAME
from vitlab.convert.onnx import export
from vitlab.data.dataset import Part
from vitlab.extras import device_of
from vitlab.training.evaluate import as_csv, by_class, confusion, logits_of, matrix_rows, scores_of


@dataclass(kw_only=True)
class Eval(OfModel, Command):
    """Score a trained model, overall and class by class."""

    model: Positional[ModelName]  # as for `predict`: a name, a folder, a file, timm:NAME, ...
    data: str  # as for `train`
    part: Part = "test"  # of the data
    batch_size: int = 256  # images at a time
    confusion: Path | None = None  # write the confusion matrix: a .csv, .png or .svg file

    def run(self, typed: str) -> int:
        out = self.confusion and command.checked(self.confusion, ".csv", ".png", ".svg")
        model = command.open_ours(self.model, self.size)
        config = model.to(device_of(self.device)).config
        data = command.load(self.data, size=pair(config.image_size), channels=config.channels)
        classes = list(data.classes)
        expect(list(model.classes) == classes, f"the classes {list(model.classes)}", classes)
        part = getattr(data, self.part)
        logits = logits_of(model, part, self.batch_size)
        matrix = confusion(logits, part.labels)
        print(scores_of(logits, part.labels))
        rows = by_class(matrix, data.classes)
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for name, *numbers, other in rows:
            cells = [n.rjust(width) for n, width in zip(numbers, widths[1:-1], strict=True)]
            print("  ".join([name.ljust(widths[0]), *cells, other]))
        if out and out.suffix.lower() == ".csv":
            command.write(out, as_csv(matrix_rows(matrix, data.classes)))
        elif out:
            from vitlab.figures import confusion_figure

            command.draw(out, confusion_figure(matrix, data.classes))
        return 0


@dataclass(kw_only=True)
class Export(OfModel):
    """Write a trained model for programs without Python, and check that its answers agree."""

    model: Positional[ModelName]  # as for `predict`: a name, a folder, a file, timm:NAME, ...
    to: Literal["onnx"] = "onnx"  # the format
    out: Path  # a .onnx file

    def run(self, typed: str) -> int:
        out = command.checked(self.out, ".onnx")
        difference = export(command.open_model(self.model, self.size), out)
        print(f"logits differ by at most {difference:.1e}; written to {out}")
        return 0


@dataclass
class Models:
    """List the models."""

    def run(self, typed: str) -> int:
        print(minivit.models())
        print(f"and {NAME}: {INSTALL}")
        return 0
