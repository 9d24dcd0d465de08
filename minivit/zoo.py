"""Models by name: torchvision's names and sizes, and small models for small pictures."""

from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any

import torch

from minivit.patches import pair
from minivit.vit import ViT, ViTConfig

V1, SWAG = "IMAGENET1K_V1", ("IMAGENET1K_SWAG_E2E_V1", "IMAGENET1K_SWAG_LINEAR_V1")
BASE: dict[str, Any] = {"dim": 768, "depth": 12, "heads": 12}
LARGE: dict[str, Any] = {"dim": 1024, "depth": 24, "heads": 16}
HUGE: dict[str, Any] = {"dim": 1280, "depth": 32, "heads": 16}

# Name -> configuration, and the names of torchvision's weights for it.
MODELS: dict[str, tuple[ViTConfig, tuple[str, ...]]] = {
    "vit_b_16": (ViTConfig(patch_size=16, **BASE), (V1, *SWAG)),
    "vit_b_32": (ViTConfig(patch_size=32, **BASE), (V1,)),
    "vit_l_16": (ViTConfig(patch_size=16, **LARGE), (V1, *SWAG)),
    "vit_l_32": (ViTConfig(patch_size=32, **LARGE), (V1,)),
    "vit_h_14": (ViTConfig(patch_size=14, **HUGE), SWAG),
    # 8 x 8 pictures in grey, scikit-learn's digits: 16 tokens
    "vit_8px": (
        ViTConfig(8, 2, 1, 10, dim=64, depth=4, heads=4, mlp_ratio=2, pool="mean"),
        (),
    ),
    # 32 x 32 pictures in colour, CIFAR-10's format: 64 tokens
    "vit_32px": (
        ViTConfig(32, 4, 3, 10, dim=128, depth=6, heads=4, mlp_ratio=2, pool="mean"),
        (),
    ),
}


def create(name: str, **changes: Any) -> ViT:
    """Makes an untrained model.

    Args:
        name: One of :func:`models`, such as ``"vit_b_32"``.
        **changes: Fields of :class:`~minivit.vit.ViTConfig` that differ: ``classes=10`` gives a
            head for ten classes, ``image_size=(224, 320)`` positions for pictures of that size.

    Returns:
        The model, in training mode, initialised as torchvision's.

    Raises:
        ValueError: An unknown name or field, or a value that does not fit the others.
    """
    if name not in MODELS:
        raise ValueError(f"there is no model {name!r}: {near(str(name), MODELS)}")
    known = [field.name for field in fields(ViTConfig)]
    for field in changes:
        if field not in known:
            raise ValueError(f"a ViT has no field {field!r}: {near(field, known)}")
    return ViT(replace(MODELS[name][0], **changes))


def near(name: str, names: Collection[str]) -> str:
    """Says which names are close to one that does not exist; all of them, if none is."""
    close = get_close_matches(name, names)
    return f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(names)}"


@dataclass(frozen=True)
class Entry:
    """A line of :func:`models`: name, number of parameters, picture and patch size, weights."""

    name: str
    parameters: int
    image_size: tuple[int, int]
    patch_size: tuple[int, int]
    weights: tuple[str, ...]


class Entries(tuple[Entry, ...]):
    """The lines of :func:`models`, printed as a table."""

    def __repr__(self) -> str:
        rows: list[tuple[str, ...]] = [("name", "parameters", "picture", "patch", "weights")]
        for entry in self:
            sizes = [" x ".join(map(str, size)) for size in (entry.image_size, entry.patch_size)]
            weights = ", ".join(entry.weights) or "-"
            rows.append((entry.name, f"{entry.parameters:,}", *sizes, weights))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = []
        for name, parameters, *rest in rows:
            cells = [name.ljust(widths[0]), parameters.rjust(widths[1])]
            cells += [cell.ljust(width) for cell, width in zip(rest, widths[2:], strict=True)]
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)


def models() -> Entries:
    """Lists every model that :func:`create` knows, with its size and torchvision's weights for it.

    Nothing is computed and no memory taken for the parameters that are counted.
    """
    entries = []
    for name, (config, weights) in MODELS.items():
        with torch.device("meta"):
            parameters = sum(p.numel() for p in ViT(config).parameters())
        sizes = pair(config.image_size), pair(config.patch_size)
        entries.append(Entry(name, parameters, *sizes, weights))
    return Entries(entries)
