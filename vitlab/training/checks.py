"""Which models can be trained on which data, and which can teach them."""

import torch

from minivit.families import OURS
from minivit.model import Model
from minivit.patches import pair
from vitlab.data.dataset import Data
from vitlab.data.splits import PARTS


def check(model: Model, data: Data) -> None:
    """Refuses a model that does not fit the data, or has no weights that train."""
    _check_sizes("model", model, data)
    for part in PARTS:
        labels = getattr(data, part).labels
        if not len(labels) or labels.min() < 0 or labels.max() >= model.config.classes:
            raise ValueError(
                f"expected images with labels from 0 to {model.config.classes - 1} in the {part} "
                f"part of {data.name}: got {labels.unique().tolist()[:20]}"
            )
    parameters = list(model.parameters())
    if odd := {str(p.dtype) for p in parameters if p.dtype != torch.float32}:
        raise ValueError(f"expected weights in torch.float32: got {', '.join(sorted(odd))}")
    if any(p.is_meta for p in parameters):
        raise ValueError("expected weights in memory: got a model on the meta device")
    if not any(p.requires_grad for p in parameters):
        raise ValueError("expected a parameter that trains: none requires a gradient")


def check_teacher(model: Model, data: Data) -> None:
    """Refuses a teacher that does not know the images or the classes."""
    _check_sizes("teacher", model, data)
    classes = model.classes or ("unnamed ones",)
    if model.preprocess is None or tuple(classes) != tuple(data.classes):
        raise ValueError(
            f"expected a trained teacher of the classes {', '.join(data.classes)}: "
            f"got one of {', '.join(classes)}"
        )


def _check_sizes(what: str, model: Model, data: Data) -> None:
    if not isinstance(model, Model):
        raise TypeError(f"expected a {what} that is {OURS}: got {type(model).__name__}")
    config = model.config
    wanted = (config.channels, *pair(config.image_size), config.classes)
    got = (*data.train.images.shape[1:], len(data.classes))
    if wanted != got:
        said = ["{} channels, {} x {} pixels, {} classes".format(*sizes) for sizes in (wanted, got)]
        raise ValueError(f"the {what} is for {said[0]}: {data.name} has {said[1]}")
