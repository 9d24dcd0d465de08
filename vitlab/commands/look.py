"""``minivit look``."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import torch
from torch import Tensor
from tyro.conf import Positional, arg

from minivit.preprocessing import Preprocess
from vitlab.calls import logits
from vitlab.commands.command import Command, OfModel, checked, draw, open_model, opened_picture
from vitlab.convert.loaded_model import LoadedModel
from vitlab.extras import device_of

PIXELS = 384  # of a shown image, about


@dataclass(kw_only=True)
class Look(OfModel, Command):
    """Draw where a model looks in an image: attention rollout, and each head of a block."""

    picture: Annotated[Positional[str], arg(metavar="IMAGE")]  # a file
    out: Path = Path("look.png")  # a .png, .svg or .pdf file
    block: int = -1  # the block whose heads are drawn, counted from 0 (-1: the last)

    def run(self, typed: str) -> int:
        from vitlab.figures import look

        out = checked(self.out, ".png", ".svg", ".pdf")
        image = opened_picture(self.picture)
        opened = open_model(self.model, self.size)
        device = device_of(self.device)
        opened.model.to(device)
        images = opened.preprocess(image).to(device)  # type: ignore[misc]
        title = f"{Path(self.picture).name}: {_answer(opened, images)}"
        larger = _more_pixels(opened.preprocess, image)
        try:
            figure = look(opened.model, images, picture=larger, block=self.block, title=title)
        except IndexError as error:
            raise ValueError(f"--block {self.block}: {error}") from error
        draw(out, figure)
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
