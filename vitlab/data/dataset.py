"""A data set in memory: images as they are on disk, with labels, in three parts."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Int64, UInt8
from torch import Tensor


@dataclass(frozen=True)
class Split:
    """One part of a data set: images with values 0 to 255, and for each the index of its class.

    Raises:
        ValueError: Other shapes or types, or not one label for each image.
    """

    images: UInt8[Tensor, "batch channels height width"]
    labels: Int64[Tensor, " batch"]

    def __post_init__(self) -> None:
        images, labels = self.images, self.labels
        types = images.dtype, labels.dtype
        fits = types == (torch.uint8, torch.int64) and labels.shape == images.shape[:1]
        if not fits or images.ndim != 4:
            raise ValueError(
                "expected images uint8 [n, channels, height, width] and labels int64 [n]: got "
                f"{images.dtype} {list(images.shape)} and {labels.dtype} {list(labels.shape)}"
            )

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: Int64[Tensor, " some"]) -> "Split":
        """The images with these indices, in this order."""
        return Split(self.images[index], self.labels[index])


@dataclass(frozen=True)
class Data:
    """A data set; :meth:`of` makes one from its parts.

    Args:
        name: What model cards and messages call it.
        validation: Held out of training, for every choice.
        test: Scored once, at the end.
        mean: Of each channel over the training part, for values from 0 to 1.
        std: Standard deviation, likewise.
        licence: Its terms of use, or None where they are not known.
        skipped: The damaged images that were left out, ``"path: reason"``.
    """

    name: str
    classes: tuple[str, ...]
    train: Split
    validation: Split
    test: Split
    mean: tuple[float, ...]
    std: tuple[float, ...]
    licence: str | None = None
    skipped: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        name: str,
        classes: tuple[str, ...],
        parts: Mapping[str, Split],
        licence: str | None = None,
        skipped: tuple[str, ...] = (),
    ) -> "Data":
        """Makes a data set from its three parts, by name, with the statistics of the training part.

        Raises:
            ValueError: A part is empty, or a class has no training images.
        """
        present = set(parts["train"].labels.tolist())
        lacking = [f"train of {name}" for i, name in enumerate(classes) if i not in present]
        if lacking := lacking or [part for part, split in parts.items() if not len(split)]:
            raise ValueError(f"expected images in every part of {name}: got none in {lacking[0]}")
        mean, std = statistics(parts["train"].images)
        return cls(name, classes, **parts, mean=mean, std=std, licence=licence, skipped=skipped)


def statistics(
    images: UInt8[Tensor, "batch channels height width"],
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel, for values from 0 to 1.

    Computed from how often each of the 256 values occurs, so the same on every machine. A channel
    of one value alone has 1 as its deviation, by which it can be divided.
    """
    values = torch.arange(256, dtype=torch.float64) / 255
    counts = torch.stack([c.flatten().bincount(minlength=256) for c in images.unbind(1)])
    fractions = counts / counts.sum(1, keepdim=True)  # [channels, 256]
    mean = (fractions * values).sum(1, keepdim=True)
    variance = (fractions * (values - mean) ** 2).sum(1)
    return tuple(mean[:, 0].tolist()), tuple(std or 1.0 for std in variance.sqrt().tolist())
