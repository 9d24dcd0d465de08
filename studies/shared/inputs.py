"""Images for surveys of the models that come with the package, and images that a study stores."""

import base64
import io
from functools import cache

import torch
from PIL import Image
from torch import Tensor

from studies.runner.run import loaded, spread
from vitlab.data import Split, load_data


def pictures(data: str, number: int, part: str = "test") -> Split:
    """Images of all classes from a part of the data, in its order, which may be by class."""
    return spread(getattr(loaded(data), part), number)


@cache
def shuffled(data: str, number: int, part: str = "test") -> Split:
    """The same in another order: batches of what stands by class would be of one class."""
    images = pictures(data, number, part)
    return images[torch.randperm(len(images), generator=torch.Generator().manual_seed(0))]


@cache
def digits(part: str) -> tuple[Tensor, Tensor]:
    """Digits of mean 0 and standard deviation 1 over the training part, and their labels."""
    data = load_data("DIGITS")
    x, chosen = data.train.images.float(), getattr(data, part)
    return (chosen.images - x.mean()) / x.std(), chosen.labels


def encoded(pixels: Tensor, kind: str = "PNG", side: int = 0, quality: int = 90) -> str:
    """Numbers from 0 to 1, ``[height, width]`` or with a last 3, as an image in base64."""
    image, file = Image.fromarray((255 * pixels).round().byte().numpy()), io.BytesIO()
    image = image.resize((side, side), Image.Resampling.LANCZOS) if side else image
    image.save(file, kind, quality=quality)
    return base64.b64encode(file.getvalue()).decode()
