"""Models by name: those of the catalogue, and those that come trained with the package."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import torch

from minivit.families import build, family
from minivit.files import describe
from minivit.hybrid import HybridConfig, alternate
from minivit.mixer import MixerConfig
from minivit.model import Config, Model, Removed
from minivit.patches import pair
from minivit.resnet import ResNetConfig
from minivit.variants import ViTVariantConfig, config_of
from minivit.vit import ViTConfig

BASE: dict[str, Any] = {"dim": 768, "depth": 12, "heads": 12}
LARGE: dict[str, Any] = {"dim": 1024, "depth": 24, "heads": 16}
HUGE: dict[str, Any] = {"dim": 1280, "depth": 32, "heads": 16}
MEAN: dict[str, Any] = {"mlp_ratio": 2, "pool": "mean"}
# What makes a Mixer the feed-forward model of Melas-Kyriazi (2021); both of its hidden layers are
# four times as wide as what they read.
FEEDFORWARD: dict[str, Any] = {
    "first": "mlp",
    "mixing_norm": "tokens",
    "positions": "learned",
    "pool": "class",
}

# Of images with 8 x 8 pixels in grey, scikit-learn's digits, the models make 16 tokens; of 32 x 32
# in colour, CIFAR-10's format, 64.
MODELS: dict[str, Config] = {
    "vit_b_16": ViTConfig(patch_size=16, **BASE),
    "vit_b_32": ViTConfig(patch_size=32, **BASE),
    "vit_l_16": ViTConfig(patch_size=16, **LARGE),
    "vit_l_32": ViTConfig(patch_size=32, **LARGE),
    "vit_h_14": ViTConfig(patch_size=14, **HUGE),
    "vit_8px": ViTConfig(8, 2, 1, 10, dim=64, depth=4, heads=4, **MEAN),
    "vit_32px": ViTConfig(32, 4, 3, 10, dim=128, depth=6, heads=4, **MEAN),
    # Tolstikhin et al. (2021); in the small ones the hidden widths have the same proportions to dim
    "mixer_b_16": MixerConfig(),
    "mixer_8px": MixerConfig(8, 2, 1, 10, 64, 4, mixing_hidden=32),
    "mixer_32px": MixerConfig(32, 4, 3, 10, 128, 6, mixing_hidden=64),
    "feedforward_b_16": MixerConfig(mixing_hidden=4 * 197, **FEEDFORWARD),
    "feedforward_8px": MixerConfig(8, 2, 1, 10, 64, 4, 4 * 17, **FEEDFORWARD),
    "feedforward_32px": MixerConfig(32, 4, 3, 10, 128, 6, 4 * 65, **FEEDFORWARD),
    "resnet18": ResNetConfig(block="basic", stages=(2, 2, 2, 2)),
    "resnet34": ResNetConfig(block="basic", stages=(3, 4, 6, 3)),
    "resnet50": ResNetConfig(stages=(3, 4, 6, 3)),
    "resnet101": ResNetConfig(stages=(3, 4, 23, 3)),
    "resnet152": ResNetConfig(stages=(3, 8, 36, 3)),
    # ResNet-8 and ResNet-14 of the paper's section 4.2, 6n + 2 layers
    "resnet_8px": ResNetConfig(8, 1, 10, "3x3", "basic", (1, 1, 1), 16),
    "resnet_32px": ResNetConfig(32, 3, 10, "3x3", "basic", (2, 2, 2), 16),
    # By AlterNet's rules, from a ResNet-14 of width 32
    "alternet_32px": HybridConfig(
        stages=alternate((2, 2, 2), (0, 1, 1)), widths=(32, 64, 128), heads=(2, 4, 8)
    ),
    # 256, 64 and 16 tokens, as in PiT
    "pit_32px": HybridConfig(
        stem="patch", patch_size=2, stages=("tt",) * 3, widths=(48, 96, 192), heads=(3, 6, 12)
    ),
    # vit_32px on a ResNet's feature map, which has as many places as that has patches
    "hybrid_32px": HybridConfig(
        stages=("c", "c", "c", "tttttt"), widths=(16, 32, 64, 128), heads=(1, 1, 1, 4)
    ),
}
V1, V2 = "IMAGENET1K_V1", "IMAGENET1K_V2"
SWAG = ("IMAGENET1K_SWAG_E2E_V1", "IMAGENET1K_SWAG_LINEAR_V1")
TORCHVISION: dict[str, tuple[str, ...]] = {  # the names of its weights, by model
    **dict.fromkeys(("vit_b_32", "vit_l_32", "resnet18", "resnet34"), (V1,)),
    **dict.fromkeys(("vit_b_16", "vit_l_16"), (V1, *SWAG)),
    "vit_h_14": SWAG,
    **dict.fromkeys(("resnet50", "resnet101", "resnet152"), (V1, V2)),
}


# Trained models that come with the package: NAME.safetensors, and its card NAME.md. An installed
# one has the cards of all and the weights of some.
CHECKPOINTS = Path(__file__).parent / "checkpoints"


def shipped() -> dict[str, Path]:
    """The files of the trained models that come with the package, by name."""
    return {path.stem: path for path in sorted(CHECKPOINTS.glob("*.safetensors"))}


def weights() -> dict[str, tuple[str, ...]]:
    """The names of the trained weights available for each model, by its name."""
    return {name: TORCHVISION.get(name, ()) for name in MODELS} | dict.fromkeys(
        shipped(), ("shipped",)
    )


PARTS = ("attention", "mixing", "mlp", "norm", "residual", "positions")  # of a ViT or a Mixer


def create(name: str, **changes: Any) -> Model:
    """Makes an untrained model, in training mode, by its name in :func:`models`.

    ``changes`` are sizes and variants, fields of its configuration: ``classes=10`` gives a head for
    ten classes, ``image_size=(224, 320)`` positions for images of that size. Parts are taken out
    with :func:`~minivit.surgery.remove`.
    """
    config, removed = config_for(name)
    return build(replace_config(config, changes), removed)


def replace_config(config: Config, changes: Mapping[str, Any]) -> Config:
    """A configuration with other values in some fields."""
    kind = ViTVariantConfig if isinstance(config, ViTConfig) else type(config)
    known = [field.name for field in fields(kind)]
    for field, value in changes.items():
        none = isinstance(value, str) and value == "none"
        none = value is False or (none and (kind is ViTVariantConfig or field == "norm"))
        if "dim" in known and field in PARTS and none:
            raise ValueError(f"got {field}={value!r}: use minivit.remove(model, {field!r})")
        if field not in known:
            raise ValueError(f"a {family(config)} has no field {field!r}: {suggest(field, known)}")
    if kind is ViTVariantConfig:
        return config_of(**vars(config) | dict(changes))
    return replace(config, **changes)


def config_for(name: str) -> tuple[Config, Removed]:
    """How one of :func:`models` is built: its configuration, and what is removed."""
    if name in MODELS:
        return MODELS[name], ()
    files = shipped()
    if name not in files and name in {path.stem for path in CHECKPOINTS.glob("*.md")}:
        raise ValueError(
            f"{name} does not come with the installed package: its weights are in the repository, "
            f"in minivit/checkpoints/{name}.safetensors, a path that load takes"
        )
    about = describe(files[name]) if name in files else None
    if about is None or about.config is None:
        raise ValueError(f"there is no model {name!r}: {suggest(str(name), [*MODELS, *files])}")
    return about.config, about.removed


def suggest(name: str, names: Collection[str]) -> str:
    """Says which names are close to one that does not exist; all of them, if none is."""
    close = get_close_matches(name, names)
    return f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(names)}"


@dataclass(frozen=True)
class Entry:
    """A line of :func:`models`."""

    name: str
    parameters: int
    image_size: tuple[int, int]
    patch_size: tuple[int, int] | None  # none where the model has no patches
    weights: tuple[str, ...]  # torchvision's; ("shipped",) if they come with the package


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
        sides = str.ljust, str.rjust, str.ljust, str.ljust, str.ljust
        lines = []
        for row in rows:
            cells = zip(sides, row, widths, strict=True)
            lines.append("  ".join(side(cell, width) for side, cell, width in cells).rstrip())
        return "\n".join(lines)


def models() -> Entries:
    """Lists every model that :func:`create` knows, with its size and the weights for it.

    Last are the trained models that come with the package, which :func:`~minivit.loading.load`
    gives with their weights.
    """
    entries = []
    for name, known in weights().items():
        config, removed = config_for(name)
        with torch.device("meta"):
            parameters = sum(p.numel() for p in build(config, removed).parameters())
        patch_size = getattr(config, "patch_size", None)
        sizes = pair(config.image_size), None if patch_size is None else pair(patch_size)
        entries.append(Entry(name, parameters, *sizes, known))
    return Entries(entries)
