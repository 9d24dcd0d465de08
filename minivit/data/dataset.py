"""A data set in memory: pictures as they are on disk, with labels, in three parts."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Split:
    """One part of a data set.

    Args:
        images: uint8 ``[n, channels, height, width]``, values 0 to 255.
        labels: int64 ``[n]``: each picture's place in the names of the classes.

    Raises:
        ValueError: Other shapes or types, or not a label for each picture.
    """

    images: Tensor
    labels: Tensor

    def __post_init__(self) -> None:
        images, labels = self.images, self.labels
        if images.dtype != torch.uint8 or images.ndim != 4 or 0 in images.shape[1:]:
            raise ValueError(
                "expected images uint8 [n, channels, height, width]: "
                f"got {images.dtype} {list(images.shape)}"
            )
        if labels.dtype != torch.int64 or labels.shape != images.shape[:1]:
            raise ValueError(
                f"expected labels int64 [{len(images)}], one a picture: "
                f"got {labels.dtype} {list(labels.shape)}"
            )

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: Tensor) -> "Split":
        """The pictures with these numbers, int64 ``[m]``, in this order."""
        return Split(self.images[index], self.labels[index])


@dataclass(frozen=True)
class Data:
    """A data set; :meth:`of` makes one from its parts.

    Args:
        name: What it is called, in model cards and messages.
        classes: Their names.
        train: What a model learns from.
        validation: Held out of training, for every choice.
        test: Scored once, at the end.
        mean: Of the training part, by channel, for pictures from 0 to 1.
        std: Standard deviation, likewise.
        licence: Its terms of use, or none if not known.
        skipped: The pictures that were left out because they are damaged, ``"path: reason"``.
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
            ValueError: A part is empty, pictures differ in size, a label is not that of a class,
                a class has no training pictures, or these are all of one value in a channel.
        """
        train = parts["train"]
        for part, split in parts.items():
            if not len(split):
                raise ValueError(f"{name} has no pictures in its {part} part")
            if split.images.shape[1:] != train.images.shape[1:]:
                raise ValueError(
                    f"pictures of {name} differ: {list(train.images.shape[1:])} in train, "
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
            raise ValueError(f"{name} has no training pictures of {', '.join(missing)}")
        mean, std = statistics(train.images)
        if 0 in std:
            raise ValueError(f"the training pictures of {name} are all of one value in a channel")
        return cls(name, classes, **parts, mean=mean, std=std, licence=licence, skipped=skipped)


def statistics(images: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation by channel, of values scaled to [0, 1].

    They come from a count of each of the 256 values, so are the same on every machine.

    Args:
        images: uint8 ``[n, channels, height, width]``.
    """
    values = torch.arange(256, dtype=torch.float64) / 255
    counts = torch.stack([c.flatten().bincount(minlength=256) for c in images.unbind(1)])
    shares = counts / counts.sum(1, keepdim=True)  # [channels, 256]
    mean = (shares * values).sum(1, keepdim=True)
    variance = (shares * (values - mean) ** 2).sum(1)
    return tuple(mean[:, 0].tolist()), tuple(variance.sqrt().tolist())
