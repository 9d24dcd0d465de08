"""What the commands share: their options, and how they open data and models, and write files."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import arg

import vitlab
from minivit.files import atomic_write
from minivit.loading import resized
from minivit.model import Model
from minivit.torchvision import from_torchvision
from vitlab.calls import expect
from vitlab.convert.dinov2 import NAME, dinov2_small_saliency
from vitlab.convert.open_model import LIBRARIES, LoadedModel, open_any
from vitlab.data.loading import Data, load_data
from vitlab.data.pictures import open_picture
from vitlab.training.state import write as write

ModelName = Annotated[str, arg(metavar="MODEL")]


@dataclass(kw_only=True)
class Command:
    device: Literal["auto", "cuda", "mps", "cpu"] = "auto"  # auto is the first there is
    threads: int | None = None  # processor threads (None: torch's choice)


@dataclass(kw_only=True)
class OfModel:
    """The options of commands that open a trained model."""

    # a trained model: a name such as cifar10_vit, the folder of a training run, a .safetensors
    # file, one of another library (timm:NAME, hf:NAME or torchvision:NAME), or module:function, a
    # function of yours that returns one
    model: ModelName
    # side of the images, to which positions are resampled (None: the model's own)
    size: Annotated[int | None, arg(metavar="PIXELS")] = None


def complain(error: object) -> int:
    """Prints an error; gives the exit code for bad input."""
    print(f"error: {error}", file=sys.stderr)
    return 2


def load(source: str, **options: Any) -> Data:
    """Loads data, and reports what was left out."""
    data = load_data(source, **options)
    for picture in data.skipped:
        print(f"left out: {picture}", file=sys.stderr)
    return data


def opened_picture(path: str) -> Any:
    """An image, or a ValueError that says why there is none."""
    try:
        return open_picture(path)
    except Exception as error:  # broken files raise many kinds
        why = f"{type(error).__name__}: {error}"
        raise ValueError(f"expected an image at {path}; reading it failed: {why}") from error


def open_model(name: str, size: int | None = None) -> LoadedModel:
    """A trained model of any library that can read images, at another size if it is ours."""
    opened = open_any(name)
    if opened.preprocess is None:
        raise ValueError(f"{name} does not say how images are prepared: {opened.unprepared}")
    if size is None:
        return opened
    if not isinstance(opened.model, Model):
        raise ValueError(f"--size is for minivit's own models: got {name} --size {size}")
    own = name == NAME  # it has a table of positions for a larger size
    model = dinov2_small_saliency(image_size=size) if own else resized(opened.model, size)
    return replace(opened, model=model, preprocess=model.preprocess)


def open_ours(name: str, size: int | None = None) -> Model:
    """A trained model in minivit's own modules, converted from its library's where needed."""
    opened = open_model(name, size)
    if isinstance(opened.model, Model):
        return opened.model
    converters: dict[str, Any] = {"timm": vitlab.from_timm, "hf": vitlab.from_huggingface}
    converters["torchvision"] = from_torchvision
    library = name.partition(":")[0]
    expect(library in converters, f"a model of minivit's, or of {', '.join(LIBRARIES)}", name)
    model: Model = converters[library](opened.model)
    preprocess: Any = opened.preprocess
    model.preprocess, model.licence = preprocess, opened.licence
    model.classes = opened.classes or [str(i) for i in range(model.config.classes)]
    return model


def checked(path: Path, *endings: str) -> Path:
    """A path for a file to be written, refused before the work for it is done."""
    fits = path.suffix.lower() in endings and path.parent.is_dir()
    expect(fits, f"a {' or '.join(endings)} file in a folder that exists", path)
    return path


def draw(path: Path, figure: Any) -> None:
    """Writes a figure, whole or not at all, as PNG or SVG by the path's ending."""
    with atomic_write(path) as scratch:
        figure.savefig(scratch, dpi=150, bbox_inches="tight")
