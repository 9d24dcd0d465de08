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
        if images.dtype != torch.uint8 or images.ndim != 4 or 0 in images.shape[1:]:
            raise ValueError(
                "expected images uint8 [n, channels, height, width]: "
                f"got {images.dtype} {list(images.shape)}"
            )
        if labels.dtype != torch.int64 or labels.shape != images.shape[:1]:
            raise ValueError(
                f"expected labels int64 [{len(images)}], one for each image: "
                f"got {labels.dtype} {list(labels.shape)}"
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
        train: What a model learns from.
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
            ValueError: A part is empty, images differ in size, a label is not the index of a class,
                a class has no training images, or a channel of these has one value alone.
        """
        train = parts["train"]
        for part, split in parts.items():
            if not len(split):
                raise ValueError(f"{name} has no images in its {part} part")
            if split.images.shape[1:] != train.images.shape[1:]:
                raise ValueError(
                    f"images of {name} differ: {list(train.images.shape[1:])} in train, "
                    f"{list(split.images.shape[1:])} in {part}"
                )
            low, high = split.labels.min().item(), split.labels.max().item()
            if low < 0 or high >= len(classes):
                raise ValueError(
                    f"{name} has {len(classes)} classes, so labels from 0 to {len(classes) - 1}: "
                    f"got {low} to {high} in {part}"
                )
        counts = train.labels.bincount(minlength=len(classes)).tolist()
        if missing := [c for c, count in zip(classes, counts, strict=True) if not count]:
            raise ValueError(f"{name} has no training images of {', '.join(missing)}")
        mean, std = statistics(train.images)
        if 0 in std:
            raise ValueError(f"the training images of {name} are all of one value in a channel")
        return cls(name, classes, **parts, mean=mean, std=std, licence=licence, skipped=skipped)


def statistics(
    images: UInt8[Tensor, "batch channels height width"],
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel, for values from 0 to 1.

    Computed from how often each of the 256 values occurs, so the same on every machine.
    """
    values = torch.arange(256, dtype=torch.float64) / 255
    counts = torch.stack([c.flatten().bincount(minlength=256) for c in images.unbind(1)])
    fractions = counts / counts.sum(1, keepdim=True)  # [channels, 256]
    mean = (fractions * values).sum(1, keepdim=True)
    variance = (fractions * (values - mean) ** 2).sum(1)
    return tuple(mean[:, 0].tolist()), tuple(variance.sqrt().tolist())
