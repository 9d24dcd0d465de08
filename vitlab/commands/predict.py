"""``minivit predict``."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
from torch import Tensor
from tyro.conf import Positional, arg

from vitlab.calls import logits
from vitlab.commands.command import Command, checked, complain, counted, open_model, write
from vitlab.commands.options import ImageSize, ModelName
from vitlab.convert.opened import Opened
from vitlab.data.listing import images_in
from vitlab.data.pictures import open_picture
from vitlab.training.confusion import as_csv
from vitlab.training.defaults import device_of

STANDARD_OUTPUT = Path("-")
MANY = arg(
    metavar="IMAGE|FOLDER ...",
    help="image files, or folders: their images are taken in the order of their names, followed by "
    "those of the folders inside",
    help_behavior_hint="(required)",
)


@dataclass(kw_only=True)
class Predict(Command):
    """Classify images.

    An image that cannot be read is named on standard error and left out; the exit code is then 2.
    """

    pictures: Annotated[Positional[tuple[str, ...]], MANY]
    model: ModelName
    size: ImageSize = None
    top: int = 5  # how many classes
    batch_size: int = 32  # images at a time
    csv: Path | None = None  # write a table, a line for each image; - for standard output
    json: Path | None = None  # write the same as JSON; - for standard output

    def run(self, typed: str) -> int:
        if not self.pictures:
            raise ValueError("expected the path of at least one image: got none")
        files = [(self.csv, ".csv", _csv), (self.json, ".json", _json)]
        for path, ending, _ in files:
            if path and path != STANDARD_OUTPUT:
                checked(path, ending)
        paths = [path for given in self.pictures for path in images_in(given)]
        opened = open_model(self.model, self.size)
        opened.model.to(device_of(self.device))
        listed = not (self.csv or self.json)
        rows: list[dict[str, Any]] = []
        with torch.no_grad():
            for row in self._rows(opened, paths, listed):
                rows.append(row)
                if listed and "error" not in row:
                    print(row["path"])
                    for found in row["predictions"]:
                        print(f"  {found['probability']:7.2%}  {found['class']}")
        for path, _, text in files:
            if path == STANDARD_OUTPUT:
                sys.stdout.write(text(rows))
            elif path:
                write(path, text(rows))
        return 2 if any("error" in row for row in rows) else 0

    def _rows(self, opened: Opened, paths: list[str], listed: bool) -> Iterator[dict[str, Any]]:
        """What is found for each image, in their order, batch by batch."""
        device = next(opened.model.parameters()).device
        batch: list[dict[str, Any]] = []
        images: list[Tensor] = []
        for i, path in enumerate(counted(paths, "images", not listed), 1):
            batch.append({"path": path})
            try:
                images.append(opened.preprocess(open_picture(path)))  # type: ignore[misc]
            except Exception as error:  # broken files raise many kinds
                why = f"{type(error).__name__}: {error}"
                complain(f"expected an image at {path}; reading it failed: {why}")
                batch[-1]["error"] = why
            if len(images) == self.batch_size or i == len(paths):
                found = iter(self._predictions(opened, images, device))
                yield from (row if "error" in row else row | next(found) for row in batch)
                batch, images = [], []

    def _predictions(
        self, opened: Opened, images: list[Tensor], device: torch.device
    ) -> Iterator[dict[str, Any]]:
        if not images:
            return
        answers = logits(opened.model, torch.cat(images).to(device)).cpu()
        names = opened.classes or [str(i) for i in range(answers.shape[1])]
        for probabilities in answers.double().softmax(1):
            best = probabilities.topk(min(self.top, len(probabilities)))
            pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
            yield {"predictions": [{"class": names[i], "probability": p} for i, p in pairs]}


def _csv(rows: list[dict[str, Any]]) -> str:
    """A line for each image: path, classes and probabilities, and what is wrong with it."""
    most = max((len(row.get("predictions", ())) for row in rows), default=0)
    numbers = range(1, most + 1)
    lines = [
        ["path", *(f"{what}_{n}" for n in numbers for what in ("class", "probability")), "error"]
    ]
    for row in rows:
        found = row.get("predictions", ())
        cells = [cell for one in found for cell in (one["class"], f"{one['probability']:.6f}")]
        lines.append([row["path"], *cells, *[""] * (2 * most - len(cells)), row.get("error", "")])
    return as_csv(lines)


def _json(rows: list[dict[str, Any]]) -> str:
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"
