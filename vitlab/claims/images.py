"""The images of an audit: a folder's, a data set's, or generated ones, as the model reads them."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import torch
from jaxtyping import Float, Int64, UInt8
from PIL import Image
from torch import Tensor

from minivit.files import fingerprint
from vitlab.calls import expect
from vitlab.convert.loaded_model import LoadedModel
from vitlab.data.dataset import evenly
from vitlab.data.loading import SOURCES, load_data
from vitlab.data.photographs import PHOTOGRAPHS, crops, photograph
from vitlab.data.pictures import is_picture, open_picture, walk
from vitlab.data.shapes import draw_shapes

SIDE = 128  # of generated shapes in pixels, the most that they can have
CROP = 224  # windows of photographs are at least so wide; the smallest photograph has 300
OWN = "The user's own images. The figures hold for images like these."
OF_SKIMAGE = "Photographs that come with scikit-image, few and of many kinds."
TEST = "The test part of the data set: a model that trained on other parts has not seen it."
GENERATED = (
    "Generated shapes, and crops of four photographs: enough to see that every measurement runs, "
    "and for claims about weights alone. Figures that depend on images hold for these only, which "
    "no model was made for: for figures to cite, give --images."
)


@dataclass(frozen=True)
class Images:
    """Images as a model reads them."""

    pixels: Float[Tensor, "images channels height width"]
    worth: str  # what they are good for
    source: str = ""  # a folder, or the name of a data set
    labels: Int64[Tensor, "images"] | None = None  # indices of classes of the model
    unlabelled: str = "generated images have none"  # why there are no labels
    skipped: tuple[str, ...] = ()  # files that could not be read, "path: reason"

    @property
    def suit(self) -> bool:
        """Whether a model may be made for them, as the user's own or a data set of its classes."""
        return bool(self.source) and (self.source not in SOURCES or self.labels is not None)

    @cached_property
    def sha256(self) -> str:
        """The hash of every pixel and label."""
        labels = {} if self.labels is None else {"labels": self.labels}
        return fingerprint({"pixels": self.pixels, **labels}, {})


def images_for(opened: LoadedModel, source: str, count: int, seed: int) -> Images:
    """Reads at most ``count`` images, evenly spaced among those that there are, in mixed order: of
    a folder, of the test part of ``"DIGITS"``, ``"CIFAR10"`` or ``"SHAPES"``, scikit-image's
    ``"PHOTOGRAPHS"``, or generated."""
    expect(count > 0, "at least one image", f"--count {count}")
    if not source:
        images = _generated(opened, count, seed)
    elif source == "PHOTOGRAPHS":
        whole = [photograph(name) for name in list(PHOTOGRAPHS)[:count]]
        images = Images(_prepared(opened, whole), OF_SKIMAGE, source, unlabelled="they have none")
    elif source in SOURCES:
        data = load_data(source)
        part = data.test[evenly(len(data.test), count)]
        labels, why = _labels(part.labels, data.classes, opened.classes)
        pixels = _prepared(opened, part.images)
        images = Images(pixels, TEST, source, labels, why, data.skipped)
    else:
        images = _folder(opened, source, count)
    order = torch.randperm(len(images.pixels), generator=torch.Generator().manual_seed(seed))
    labels = None if images.labels is None else images.labels[order]
    return replace(images, pixels=images.pixels[order], labels=labels)


def _prepared(
    opened: LoadedModel, images: Iterable[UInt8[Tensor, "channels height width"]]
) -> Tensor:
    """Images of a data set as the model reads them."""
    arrays = (image.permute(1, 2, 0).squeeze(2).numpy() for image in images)
    return torch.cat([opened.read(Image.fromarray(array)) for array in arrays])


def _generated(opened: LoadedModel, count: int, seed: int) -> Images:
    """Generated shapes, then crops of photographs; without scikit-image, shapes alone."""
    worth, photographs = GENERATED, []
    if count > 1:
        try:
            photographs = [_prepared(opened, crops(count // 2, CROP, seed=seed)[0])]
        except (OSError, ValueError) as error:
            worth = f"{GENERATED} Here without photographs: {error}."
    shapes = draw_shapes(count - sum(map(len, photographs)), SIDE, seed=seed).images
    return Images(torch.cat([_prepared(opened, shapes), *photographs]), worth)


def _folder(opened: LoadedModel, source: str, count: int) -> Images:
    """Images of a folder, in an order that no file system changes; broken ones are left out."""
    root = Path(source)
    if not root.is_dir():
        raise FileNotFoundError(f"expected {', '.join(SOURCES)} or a folder: got {source}")
    files = [path for path in walk(root) if is_picture(path)]
    pixels, names, skipped = [], [], []
    for path in [files[i] for i in evenly(len(files), count).tolist()] if files else []:
        key = path.relative_to(root)
        try:
            with warnings.catch_warnings(action="ignore"):  # Pillow's, of what it mends
                picture = open_picture(path)
        except Exception as error:  # each of Pillow's formats has its own ways to fail
            skipped.append(f"{key.as_posix()}: {type(error).__name__}: {error}")
        else:
            pixels.append(opened.read(picture))
            names.append(key.parts[0] if len(key.parts) > 1 else "")
    what = f"{len(skipped)} that cannot be read" if skipped else "none"
    expect(pixels, f"images in {root}", what)
    folders = sorted(set(names))
    places = torch.tensor([folders.index(name) for name in names])
    labels, why = _labels(places, folders, opened.classes)
    return Images(torch.cat(pixels), OWN, source, labels, why, tuple(skipped))


def _labels(
    places: Int64[Tensor, "images"], names: Sequence[str], classes: Sequence[str] | None
) -> tuple[Int64[Tensor, "images"] | None, str]:
    """For images' places among names, those among the model's classes; or None, and why."""
    if "" in names:
        return None, "the folder has no folder for each class"
    if not classes:
        return None, "the names of the model's classes are not known"
    if list(names) == list(classes):
        return places, ""
    if all(name.isdigit() for name in classes):
        return None, "the model's classes are numbers, not names"
    theirs = [name.casefold() for name in classes]
    for name in names:
        if (count := theirs.count(name.casefold())) != 1:
            number = "several classes named" if count else "no class"
            return None, f"the model has {number} {name!r}"
    return torch.tensor([theirs.index(name.casefold()) for name in names])[places], ""
