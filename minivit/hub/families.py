"""The families of models: which module is built from which configuration."""

from typing import Any

from minivit.networks.hybrid import Hybrid, HybridConfig
from minivit.networks.mixer import Mixer, MixerConfig
from minivit.networks.model import Config, Model, Removed
from minivit.networks.resnet import ResNet, ResNetConfig
from minivit.networks.variants import ViTVariant, ViTVariantConfig
from minivit.networks.vit import ViT, ViTConfig
from minivit.surgery import remove

FAMILIES: dict[type[Config], type[Model]] = {
    ViTConfig: ViT,
    ViTVariantConfig: ViTVariant,
    MixerConfig: Mixer,
    ResNetConfig: ResNet,
    HybridConfig: Hybrid,
}
NAMES = ", ".join(f"minivit.{kind.__name__}" for kind in FAMILIES.values())
OURS = f"a model of minivit's ({NAMES})"


def build(config: Config, removed: Removed = ()) -> Model:
    """Makes the untrained model that a configuration describes, without the parts removed."""
    model: Any = FAMILIES[type(config)](config)
    for part, blocks in removed:
        model = remove(model, part, blocks)
    return model


def family(config: Config) -> str:
    """Names the family of a configuration: ``"ViT"`` for a ``ViTConfig``."""
    return FAMILIES[type(config)].__name__


def blocks(config: Any) -> int:
    """Counts the blocks of the model that a configuration describes."""
    if not hasattr(config, "stages"):
        return int(config.depth)
    return sum(len(stage) if isinstance(stage, str) else stage for stage in config.stages)
