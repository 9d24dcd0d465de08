"""A trained model for images of another size."""

from dataclasses import replace
from typing import Any

import torch

from minivit.hub.families import build, family
from minivit.hub.preprocessing import Preprocess
from minivit.networks.model import Model
from minivit.networks.patches import pair
from minivit.networks.positions import resample
from minivit.networks.shapes import Size


def resized(model: Model, image_size: Size) -> Model:
    """Gives a copy of a model that is made for images of another size; its patches stay.

    Positions are resampled, as :func:`~minivit.networks.positions.resample` does, so the copy
    answers as the model does to images of that size. ``preprocess`` covers the size with the whole
    of an image's shorter side.

    Raises:
        ValueError: Patches do not divide that size, or the weights are for one number of tokens,
            as a Mixer's are.
    """
    size = pair(image_size)
    if size == pair(model.config.image_size):
        return model
    config: Any = replace(model.config, image_size=size)
    with torch.device("meta"):
        other = build(config, model.removed)
    state = model.state_dict()
    there: Any = model
    if "positions.table" in state:
        new: Any = other
        table = state["positions.table"]
        state["positions.table"] = resample(table, there.positions.grid, new.positions.grid)
    fixed = [key for key, value in other.state_dict().items() if value.shape != state[key].shape]
    if fixed:
        height, width = pair(model.config.image_size)
        raise ValueError(
            f"the weights of a {family(config)} are for one number of tokens, so it takes images "
            f"of {height} x {width} pixels alone: got image_size={image_size!r}"
        )
    first = next(model.parameters())
    other.to_empty(device=first.device).to(first.dtype).load_state_dict(state)
    other.classes, other.licence = model.classes, model.licence
    if isinstance(model.preprocess, Preprocess):
        other.preprocess = replace(model.preprocess, size=size, resize=size)
    return other.train(model.training)
