"""``minivit eval``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tyro.conf import Positional

from minivit.loading import resized
from minivit.patches import pair
from vitlab.commands.command import Command, checked, draw, load, open_ours, write
from vitlab.commands.options import ImageSize, ModelName
from vitlab.training.confusion import as_csv, by_class, confusion, matrix_rows
from vitlab.training.defaults import device_of
from vitlab.training.evaluate import logits_of, scores_of


@dataclass(kw_only=True)
class Eval(Command):
    """Score a trained model, overall and class by class."""

    checkpoint: Positional[ModelName]
    data: str  # as for `train`
    part: Literal["train", "validation", "test"] = "test"  # of the data
    size: ImageSize = None
    batch_size: int = 256  # images at a time
    confusion: Path | None = None  # write the confusion matrix: a .csv, .png or .svg file

    def run(self, typed: str) -> int:
        if self.confusion:
            checked(self.confusion, ".csv", ".png", ".svg")
        model = open_ours(self.checkpoint)
        if self.size:
            model = resized(model, self.size)
        config = model.to(device_of(self.device)).config
        data = load(self.data, size=pair(config.image_size), channels=config.channels)
        if list(model.classes) != list(data.classes):
            raise ValueError(
                f"the classes of the model are {', '.join(model.classes)}: {data.name} has "
                f"{', '.join(data.classes)}"
            )
        part = getattr(data, self.part)
        logits = logits_of(model, part, self.batch_size)
        matrix = confusion(logits, part.labels)
        print(scores_of(logits, part.labels))
        _print(by_class(matrix, data.classes))
        if self.confusion and self.confusion.suffix.lower() == ".csv":
            write(self.confusion, as_csv(matrix_rows(matrix, data.classes)))
        elif self.confusion:
            from vitlab.figures import confusion_figure

            draw(self.confusion, confusion_figure(matrix, data.classes))
        return 0


def _print(rows: list[list[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells: Any = zip(row, widths, strict=True)
        name, *numbers, other = [
            cell.rjust(w) if 0 < i < 4 else cell.ljust(w) for i, (cell, w) in enumerate(cells)
        ]
        print("  ".join([name, *numbers, other]).rstrip())
