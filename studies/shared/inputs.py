"""Images for surveys of the models that come with the package."""

from functools import cache

import torch

from studies.runner.run import loaded, spread
from vitlab.data import Split


def pictures(data: str, number: int, part: str = "test") -> Split:
    """Images of all classes from a part of the data, in its order, which may be by class."""
    return spread(getattr(loaded(data), part), number)


@cache
def shuffled(data: str, number: int, part: str = "test") -> Split:
    """The same in another order: batches of what stands by class would be of one class."""
    images = pictures(data, number, part)
    return images[torch.randperm(len(images), generator=torch.Generator().manual_seed(0))]
