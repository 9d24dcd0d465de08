"""A data set in memory: images as on disk, with labels, in parts by a hash of each image's key."""

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Int64, UInt8
from torch import Tensor

from vitlab.boundary import checked
from vitlab.calls import expect

Pixels = UInt8[Tensor, "batch channels height width"]  # 0 to 255
Labels = Int64[Tensor, " batch"]  # indices of classes
Part = Literal["train", "validation", "test"]
PARTS = get_args(Part)
HELD_OUT = {"validation": 0.1, "test": 0.2}  # of each class, where a source has no such part


@checked
@dataclass(frozen=True)
class Split:
    """One part of a data set: images with values 0 to 255, and for each the index of its class."""

    images: Pixels
    labels: Labels

    def __len__(self) -> int:
        return len(self.labels)

    @checked
    def __getitem__(self, index: Int64[Tensor, " some"] | list[int]) -> "Split":
        """The images with these indices, in this order."""
        return Split(self.images[index], self.labels[index])


@dataclass(frozen=True)
class Data:
    """A data set; :meth:`of` makes one from its parts.

    ``mean`` and ``std`` are those of each channel over the training part, for values from 0 to 1.
    """

    name: str
    classes: tuple[str, ...]
    train: Split
    validation: Split
    test: Split
    mean: tuple[float, ...]
    std: tuple[float, ...]
    licence: str | None = None
    skipped: tuple[str, ...] = ()  # damaged images that were left out, "path: reason"

    @property
    def parts(self) -> tuple[Split, Split, Split]:
        return self.train, self.validation, self.test

    @classmethod
    @checked
    def of(
        cls,
        name: str,
        classes: tuple[str, ...],
        parts: Mapping[str, Split],
        licence: str | None = None,
        skipped: tuple[str, ...] = (),
    ) -> "Data":
        """Makes a data set from its three parts, with the statistics of the training part."""
        present = set(parts["train"].labels.tolist())
        lacking = [f"train of {name}" for i, name in enumerate(classes) if i not in present]
        lacking += [part for part, split in parts.items() if not len(split)]
        expect(not lacking, f"images in every part of {name}", f"none in {', '.join(lacking)}")
        mean, std = statistics(parts["train"].images)
        return cls(name, classes, **parts, mean=mean, std=std, licence=licence, skipped=skipped)


def statistics(images: Pixels) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel, for values from 0 to 1, alike on all machines.

    A channel of one value alone has 1 as its deviation, by which it can be divided.
    """
    values = torch.arange(256, dtype=torch.float64) / 255
    counts = torch.stack([c.flatten().bincount(minlength=256) for c in images.unbind(1)])
    fractions = counts / counts.sum(1, keepdim=True)  # [channels, 256]
    mean = (fractions * values).sum(1, keepdim=True)
    variance = (fractions * (values - mean) ** 2).sum(1)
    return tuple(mean[:, 0].tolist()), tuple(std or 1.0 for std in variance.sqrt().tolist())


def divide(
    keys: Sequence[str], labels: Labels, classes: Sequence[str], parts: Iterable[str] = HELD_OUT
) -> dict[str, Int64[Tensor, " _"]]:
    """Holds out ``parts``, at least an image of each class; gives the ascending indices of all."""
    fractions = [HELD_OUT[part] for part in parts]
    counts = labels.bincount(minlength=len(classes)).tolist()
    named = zip(classes, counts, strict=True)
    few = [f"{count} of {name}" for name, count in named if count <= len(fractions)]
    expect(not few, f"at least {len(fractions) + 1} images of each class", ", ".join(few))
    dealt = []
    for indices in _by_class(keys, labels):
        sizes = [max(1, round(fraction * len(indices))) for fraction in fractions]
        dealt.append(indices.split([len(indices) - sum(sizes), *sizes]))
    columns = zip(("train", *parts), zip(*dealt, strict=True), strict=True)
    return {part: torch.cat(indices).sort().values for part, indices in columns}


def thin(labels: Labels, fraction: float, seed: int) -> Int64[Tensor, " kept"]:
    """The ascending indices of a fraction of each class, which lies inside that of a larger one."""
    ordered = _by_class([f"{seed} {i}" for i in range(len(labels))], labels)
    first = [indices[: max(1, round(fraction * len(indices)))] for indices in ordered]
    return torch.cat(first).sort().values


def _by_class(keys: Sequence[str], labels: Tensor) -> list[Tensor]:
    """For each class that occurs, the indices of its images in the order of their hashes."""
    # An accented letter is one code on some systems and two on others.
    codes = [unicodedata.normalize("NFC", key).encode(errors="surrogateescape") for key in keys]
    hashes = [hashlib.sha256(code).digest() for code in codes]
    order = torch.tensor(sorted(range(len(keys)), key=hashes.__getitem__))
    return [order[labels[order] == label] for label in labels.unique()]


def evenly(total: int, number: int) -> Int64[Tensor, " chosen"]:
    """The indices of at most this many of a row, evenly spaced, as it may be ordered by class."""
    return torch.linspace(0, total - 1, min(number, total)).round().long()
