"""Parts of a data set that are the same on every machine.

A picture's part depends on a hash of its key, such as its path: not on the order in which a folder
is listed, and not on any library's random numbers.
"""

import hashlib
import unicodedata
from collections.abc import Sequence

import torch
from torch import Tensor

PARTS = ("train", "validation", "test")
SHARES = {"validation": 0.1, "test": 0.2}  # of each class, where a source has no such part


def divide(
    keys: Sequence[str], labels: Tensor, classes: Sequence[str], shares: Sequence[float]
) -> list[Tensor]:
    """Deals the pictures of each class to several parts.

    Args:
        keys: A name for each picture, no two the same.
        labels: int64 ``[n]``.
        classes: Their names.
        shares: How much of each class goes to each part, at least one picture, but for one more
            part that comes first and takes the rest.

    Returns:
        For each part the numbers of its pictures, int64, ascending.

    Raises:
        ValueError: A class has fewer pictures than there are parts.
    """
    counts = labels.bincount(minlength=len(classes)).tolist()
    few = [f"{count} of {name}" for name, count in zip(classes, counts, strict=True)
           if count <= len(shares)]  # fmt: skip
    if few:
        raise ValueError(
            f"expected at least {len(shares) + 1} pictures of each class, one for each part that "
            f"they are dealt to: got {', '.join(few)}"
        )
    parts: list[list[Tensor]] = [[] for _ in range(len(shares) + 1)]
    for numbers in _by_class(keys, labels):
        sizes = [max(1, round(share * len(numbers))) for share in shares]
        rest = len(numbers) - sum(sizes)
        for part, some in zip(parts, numbers.split([rest, *sizes]), strict=True):
            part.append(some)
    return [torch.cat(part).sort().values for part in parts]


def thin(labels: Tensor, fraction: float, seed: int) -> Tensor:
    """Keeps a fraction of each class; a smaller one lies inside a larger one of the same seed.

    Args:
        labels: int64 ``[n]``.
        fraction: Above 0 and at most 1. Of each class one picture or more is kept.
        seed: Another one keeps others.

    Returns:
        The numbers of what is kept, int64, ascending.
    """
    keys = [f"{seed} {i}" for i in range(len(labels))]
    kept = [
        numbers[: max(1, round(fraction * len(numbers)))] for numbers in _by_class(keys, labels)
    ]
    return torch.cat(kept).sort().values


def _by_class(keys: Sequence[str], labels: Tensor) -> list[Tensor]:
    """For each class that occurs, the numbers of its pictures in the order of their hashes."""
    # An accented letter is one code on some systems and two on others.
    hashes = [
        hashlib.sha256(unicodedata.normalize("NFC", key).encode(errors="surrogateescape")).digest()
        for key in keys
    ]
    order = torch.tensor(sorted(range(len(keys)), key=hashes.__getitem__))
    return [order[labels[order] == label] for label in labels.unique()]
