"""Models by name: those of the catalogue, and those that come trained with the package."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import torch

from minivit.hub.catalogue import MODELS as MODELS
from minivit.hub.families import build, family
from minivit.hub.files import describe
from minivit.networks.model import Config, Model, Removed
from minivit.networks.patches import pair
from minivit.networks.variants import ViTVariantConfig, config_of
from minivit.networks.vit import ViTConfig

# Trained models that come with the package: NAME.safetensors, and its card NAME.md. An installed
# one has the cards of all and the weights of some.
CHECKPOINTS = Path(__file__).parents[1] / "checkpoints"


def shipped() -> dict[str, Path]:
    """The files of the trained models that come with the package, by name."""
    return {path.stem: path for path in sorted(CHECKPOINTS.glob("*.safetensors"))}


def weights() -> dict[str, tuple[str, ...]]:
    """The names of the trained weights available for each model, by its name."""
    known = {name: names for name, (_, names) in MODELS.items()}
    return known | dict.fromkeys(shipped(), ("shipped",))


PARTS = ("attention", "mixing", "mlp", "norm", "residual", "positions")  # of a ViT or a Mixer


def create(name: str, **changes: Any) -> Model:
    """Makes an untrained model, in training mode.

    Args:
        name: One of :func:`models`, such as ``"vit_b_32"``.
        **changes: Sizes and variants that differ, fields of its configuration: ``classes=10`` gives
            a head for ten classes, ``image_size=(224, 320)`` positions for images of that size.
            Parts are taken out with :func:`~minivit.surgery.remove`.

    Raises:
        ValueError: An unknown name or field, or a value that does not fit the others.
    """
    config, removed = described(name)
    return build(changed(config, changes), removed)


def changed(config: Config, changes: Mapping[str, Any]) -> Config:
    """A configuration with other values in some fields."""
    kind = ViTVariantConfig if isinstance(config, ViTConfig) else type(config)
    known = [field.name for field in fields(kind)]
    for field, value in changes.items():
        none = value is False or (value == "none" and (kind is ViTVariantConfig or field == "norm"))
        if "dim" in known and field in PARTS and none:
            raise ValueError(
                f"expected sizes and variants: got {field}={value!r}. A part is taken out by "
                f"minivit.remove(model, {field!r}), before training or after"
            )
        if field not in known:
            raise ValueError(f"a {family(config)} has no field {field!r}: {near(field, known)}")
    if kind is ViTVariantConfig:
        return config_of(
            **{f.name: getattr(config, f.name) for f in fields(config)} | dict(changes)
        )
    return replace(config, **changes)


def described(name: str) -> tuple[Config, Removed]:
    """How one of :func:`models` is built: its configuration, and what is removed."""
    if name in MODELS:
        return MODELS[name][0], ()
    files = shipped()
    if name not in files and name in {path.stem for path in CHECKPOINTS.glob("*.md")}:
        raise ValueError(
            f"{name} does not come with the installed package: its weights are in the repository, "
            f"in minivit/checkpoints/{name}.safetensors, a path that load takes"
        )
    about = describe(files[name]) if name in files else None
    if about is None or about.config is None:
        raise ValueError(f"there is no model {name!r}: {near(str(name), [*MODELS, *files])}")
    return about.config, about.removed


def near(name: str, names: Collection[str]) -> str:
    """Says which names are close to one that does not exist; all of them, if none is."""
    close = get_close_matches(name, names)
    return f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(names)}"


@dataclass(frozen=True)
class Entry:
    """A line of :func:`models`: name, number of parameters, image and patch size, weights.

    ``patch_size`` is none where the model has no patches; ``weights`` are torchvision's, or
    ``("shipped",)`` for a trained model that comes with the package.
    """

    name: str
    parameters: int
    image_size: tuple[int, int]
    patch_size: tuple[int, int] | None
    weights: tuple[str, ...]


class Entries(tuple[Entry, ...]):
    """The lines of :func:`models`, printed as a table."""

    def __repr__(self) -> str:
        rows: list[tuple[str, ...]] = [("name", "parameters", "image", "patch", "weights")]
        for entry in self:
            pairs = entry.image_size, entry.patch_size
            sizes = [" x ".join(map(str, size)) if size else "-" for size in pairs]
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
    """Lists every model that :func:`create` knows, with its size and the weights for it.

    Last are the trained models that come with the package: :func:`~minivit.hub.loading.load` gives
    them with their weights, :func:`create` without. Counting takes no memory for the parameters.
    """
    entries = []
    for name, known in weights().items():
        config, removed = described(name)
        with torch.device("meta"):
            parameters = sum(p.numel() for p in build(config, removed).parameters())
        patch_size = getattr(config, "patch_size", None)
        sizes = pair(config.image_size), None if patch_size is None else pair(patch_size)
        entries.append(Entry(name, parameters, *sizes, known))
    return Entries(entries)
