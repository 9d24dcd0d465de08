"""Images for surveys of the models that come with the package."""

from functools import cache

import torch

from studies.runner.run import spread
from vitlab.data import Data, Split, load_data


def pictures(data: str, number: int, part: str = "test") -> Split:
    """Images of all classes from a part of the data, in its order, which may be by class."""
    return spread(getattr(_loaded(data), part), number)


@cache
def shuffled(data: str, number: int, part: str = "test") -> Split:
    """The same in another order: batches of what stands by class would be of one class."""
    images = pictures(data, number, part)
    return images[torch.randperm(len(images), generator=torch.Generator().manual_seed(0))]


@cache  # a copy in files takes a minute to read
def _loaded(data: str) -> Data:
    return load_data(data)
