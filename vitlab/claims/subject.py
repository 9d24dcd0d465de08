"""What is audited, made of models that were opened by name and of images."""

import torch
from torch import nn

from minivit.preprocessing import Preprocess
from vitlab.claims.images import Images
from vitlab.claims.probe import Subject
from vitlab.claims.refusal import named, out_of_memory
from vitlab.convert.loaded_model import LoadedModel


def together(opened: LoadedModel, beside: LoadedModel) -> None:
    """Checks that two models read the same images; raises ValueError."""
    if beside.preprocess != opened.preprocess:
        raise ValueError(
            f"expected two models that read the same images: {opened.name} takes "
            f"{opened.preprocess}, and {beside.name} takes {beside.preprocess}"
        )


def subject_of(
    opened: LoadedModel,
    beside: LoadedModel | None,
    images: Images,
    device: torch.device,
    batch_size: int,
) -> Subject:
    """Puts models and images on a device, and sees that each model runs on the images.

    Raises:
        ValueError: One does not.
    """
    pixels = images.pixels.to(device)
    for one in (opened, beside):
        if one is not None:
            one.model.to(device)
            _runs(one, pixels[:batch_size])
    untrained = opened.untrained

    def twin() -> nn.Module:
        assert untrained is not None
        return untrained().to(device)

    scaled = opened.preprocess if isinstance(opened.preprocess, Preprocess) else None
    return Subject(
        opened.model,
        pixels,
        labels=None if images.labels is None else images.labels.to(device),
        untrained=twin if untrained else None,
        beside=beside.model if beside else None,
        white=tuple(1 / x for x in scaled.std) if scaled else None,
        batch_size=batch_size,
    )


def _runs(opened: LoadedModel, pixels: torch.Tensor) -> None:
    try:
        with torch.no_grad():
            opened.model(pixels)
    except Exception as error:  # a stranger's model may raise anything
        if out_of_memory(error):
            raise
        shape = list(pixels.shape[1:])
        raise ValueError(f"{opened.name} does not run on images {shape}: {named(error)}") from error
