"""``minivit predict`` and ``look``: what a model says of images."""

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import torch
from torch import Tensor
from tyro.conf import Positional, arg

from minivit.preprocessing import Preprocess
from vitlab.calls import expect, logits
from vitlab.commands import command
from vitlab.commands.command import Command, OfModel
from vitlab.convert.loaded_model import LoadedModel
from vitlab.data.pictures import is_picture, walk
from vitlab.extras import device_of
from vitlab.training.evaluate import as_csv

STANDARD_OUTPUT = Path("-")
PIXELS = 384  # of an image that is looked at, about
MANY = arg(metavar="IMAGE|FOLDER ...", help_behavior_hint="(required)")


@dataclass(kw_only=True)
class Predict(OfModel, Command):
    """Classify images.

    An image that cannot be read is named on standard error and left out; the exit code is then 2.
    """

    # image files, or folders: their images are taken in the order of their names, followed by those
    # of the folders inside
    pictures: Annotated[Positional[tuple[str, ...]], MANY]
    top: int = 5  # how many classes
    batch_size: int = 32  # images at a time
    csv: Path | None = None  # write a table, a line for each image; - for standard output
    json: Path | None = None  # write the same as JSON; - for standard output

    def run(self, typed: str) -> int:
        files = [(self.csv, ".csv", _csv), (self.json, ".json", _json)]
        for path, ending, _ in files:
            if path and path != STANDARD_OUTPUT:
                command.checked(path, ending)
        paths: list[str] = []
        for name in self.pictures:
            images = (str(file) for file in walk(Path(name)) if is_picture(file))
            paths += images if Path(name).is_dir() else [name]
        expect(paths, "at least one image", f"none in {list(self.pictures)}")
        opened = command.open_model(self.model, self.size)
        opened.model.to(device_of(self.device))
        rows: list[dict[str, Any]] = []
        for start in range(0, len(paths), self.batch_size):
            rows += self._rows(opened, paths[start : start + self.batch_size])
            for row in rows[start:] if not (self.csv or self.json) else ():
                if "predictions" in row:
                    print(row["path"])
                for answer in row.get("predictions", ()):
                    print(f"  {answer['probability']:7.2%}  {answer['class']}")
        for path, _, text in files:
            if path == STANDARD_OUTPUT:
                sys.stdout.write(text(rows))
            elif path:
                command.write(path, text(rows))
        return 2 if any("error" in row for row in rows) else 0

    @torch.no_grad()
    def _rows(self, opened: LoadedModel, paths: list[str]) -> list[dict[str, Any]]:
        """The path of each image of a batch, with its likeliest classes or what is wrong."""
        rows: list[dict[str, Any]] = [{"path": path} for path in paths]
        images: list[Tensor] = []
        for row in rows:
            try:
                images.append(opened.read(command.opened_picture(row["path"])))
            except Exception as error:  # preprocessing has its own ways to fail
                command.complain(error)
                cause = error.__cause__ or error
                row["error"] = f"{type(cause).__name__}: {cause}"
        if not images:
            return rows
        batch = torch.cat(images).to(next(opened.model.parameters()).device)
        probabilities = logits(opened.model, batch).cpu().double().softmax(1)
        count = probabilities.shape[1]
        names, best = opened.classes or range(count), probabilities.topk(min(self.top, count))
        good = [row for row in rows if "error" not in row]
        for row, values, indices in zip(good, *map(Tensor.tolist, best), strict=True):
            pairs = zip(values, indices, strict=True)
            row["predictions"] = [{"class": str(names[i]), "probability": x} for x, i in pairs]
        return rows


def _csv(rows: list[dict[str, Any]]) -> str:
    """A line for each image: path, classes and probabilities, and what is wrong with it."""
    most = max(len(row.get("predictions", ())) for row in rows)
    heads = [f"{what}_{n}" for n in range(1, most + 1) for what in ("class", "probability")]
    lines = [["path", *heads, "error"]]
    for row in rows:
        answers = row.get("predictions", ())
        cells = [cell for a in answers for cell in (a["class"], f"{a['probability']:.6f}")]
        padding = [""] * (len(heads) - len(cells))
        lines.append([row["path"], *cells, *padding, row.get("error", "")])
    return as_csv(lines)


def _json(rows: list[dict[str, Any]]) -> str:
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


@dataclass(kw_only=True)
class Look(OfModel, Command):
    """Draw where a model looks in an image: attention rollout, and each head of a block."""

    picture: Annotated[Positional[str], arg(metavar="IMAGE")]  # a file
    out: Path = Path("look.png")  # a .png, .svg or .pdf file
    block: int = -1  # the block whose heads are drawn, counted from 0 (-1: the last)

    def run(self, typed: str) -> int:
        from vitlab.figures import look

        out = command.checked(self.out, ".png", ".svg", ".pdf")
        image = command.opened_picture(self.picture)
        opened = command.open_model(self.model, self.size)
        device = device_of(self.device)
        opened.model.to(device)
        images = opened.read(image).to(device)
        title = f"{Path(self.picture).name}: {_answer(opened, images)}"
        larger = _more_pixels(opened.preprocess, image)
        try:
            figure = look(opened.model, images, picture=larger, block=self.block, title=title)
        except IndexError as error:
            raise ValueError(f"--block {self.block}: {error}") from error
        command.draw(out, figure)
        print(f"{title}\nwritten to {out}")
        return 0


@torch.no_grad()
def _answer(opened: LoadedModel, images: Tensor) -> str:
    """The likeliest class and its probability, and which model says so."""
    try:
        probabilities = logits(opened.model, images)[0].double().softmax(0)
    except ValueError:  # it has no logits, and still looks
        return opened.name
    index = int(probabilities.argmax())
    name = opened.classes[index] if opened.classes else f"class {index}"
    return f"{name}, {probabilities[index]:.1%}, by {opened.name}"


def _more_pixels(preprocess: Any, image: Any) -> Tensor | None:
    """What the model sees of an image, with more pixels than it reads where these are few."""
    if not isinstance(preprocess, Preprocess):
        return None
    factor = max(1, round(PIXELS / max(preprocess.size)))
    (height, width), (down, across) = preprocess.size, preprocess.resize
    size, resize = (height * factor, width * factor), (down * factor, across * factor)
    return replace(preprocess, size=size, resize=resize).fit(image)[0].float() / 255
