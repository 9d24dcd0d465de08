"""Parts of a data set that are the same on every machine.

The part of an image depends on a hash of its key, such as its path: not on the order in which a
folder is listed, nor on any library's random numbers.
"""

import hashlib
import unicodedata
from collections.abc import Sequence

import torch
from jaxtyping import Int64
from torch import Tensor

PARTS = ("train", "validation", "test")
HELD_OUT = {"validation": 0.1, "test": 0.2}  # of each class, where a source has no such part


def divide(
    keys: Sequence[str],
    labels: Int64[Tensor, " batch"],
    classes: Sequence[str],
    fractions: Sequence[float],
) -> list[Int64[Tensor, " _"]]:
    """Deals the images of each class to several parts; gives the indices of each, ascending.

    Args:
        keys: A name for each image, no two the same.
        fractions: How much of each class goes to each part, at least one image. One more part comes
            first and takes the rest.

    Raises:
        ValueError: A class has fewer images than there are parts.
    """
    counts = labels.bincount(minlength=len(classes)).tolist()
    named = zip(classes, counts, strict=True)
    if few := [f"{count} of {name}" for name, count in named if count <= len(fractions)]:
        raise ValueError(
            f"expected at least {len(fractions) + 1} images of each class, one for each part that "
            f"they are dealt to: got {', '.join(few)}"
        )
    dealt = []
    for indices in _by_class(keys, labels):
        sizes = [max(1, round(fraction * len(indices))) for fraction in fractions]
        dealt.append(indices.split([len(indices) - sum(sizes), *sizes]))
    return [torch.cat(part).sort().values for part in zip(*dealt, strict=True)]


def evenly(total: int, number: int) -> Int64[Tensor, " chosen"]:
    """The indices of at most this many of a row, evenly spaced, as it may be ordered by class."""
    return torch.linspace(0, total - 1, min(number, total)).round().long()


def thin(labels: Int64[Tensor, " batch"], fraction: float, seed: int) -> Int64[Tensor, " kept"]:
    """Keeps a fraction of each class, at least one image, and gives the indices, ascending.

    A smaller fraction lies inside a larger one of the same seed.
    """
    ordered = _by_class([f"{seed} {i}" for i in range(len(labels))], labels)
    kept = [indices[: max(1, round(fraction * len(indices)))] for indices in ordered]
    return torch.cat(kept).sort().values


def _by_class(keys: Sequence[str], labels: Tensor) -> list[Tensor]:
    """For each class that occurs, the indices of its images in the order of their hashes."""
    # An accented letter is one code on some systems and two on others.
    codes = [unicodedata.normalize("NFC", key).encode(errors="surrogateescape") for key in keys]
    hashes = [hashlib.sha256(code).digest() for code in codes]
    order = torch.tensor(sorted(range(len(keys)), key=hashes.__getitem__))
    return [order[labels[order] == label] for label in labels.unique()]
