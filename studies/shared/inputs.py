"""Inputs of surveys: models that come with the package, and images that these never saw."""

from functools import cache

import torch

import minivit
from minivit.catalogue import shipped
from minivit.model import Model
from studies.runner.run import spread
from studies.runner.survey import NotHere
from vitlab.data import Data, Split, load_data


def model(name: str) -> Model:
    """A trained model; raises :class:`NotHere` if it does not come with the package."""
    if name not in shipped():
        raise NotHere(f"{name} does not come with the package yet")
    return minivit.load(name)


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
    try:
        return load_data(data)
    except FileNotFoundError as reason:
        raise NotHere(str(reason)) from reason
