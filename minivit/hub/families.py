"""The families of models: which module is built from which configuration."""

from typing import Any

from minivit.networks.hybrid import Hybrid, HybridConfig
from minivit.networks.mixer import Mixer, MixerConfig
from minivit.networks.model import Config, Model
from minivit.networks.resnet import ResNet, ResNetConfig
from minivit.networks.vit import ViT, ViTConfig

FAMILIES: dict[type[Config], type[Model]] = {
    ViTConfig: ViT,
    MixerConfig: Mixer,
    ResNetConfig: ResNet,
    HybridConfig: Hybrid,
}
NAMES = ", ".join(f"minivit.{kind.__name__}" for kind in FAMILIES.values())
OURS = f"a model of minivit's ({NAMES})"


def build(config: Config) -> Model:
    """Makes the untrained model that a configuration describes."""
    return FAMILIES[type(config)](config)


def family(config: Config) -> str:
    """Names the family of a configuration: ``"ViT"`` for a :class:`~minivit.networks.vit.ViTConfig`."""
    return FAMILIES[type(config)].__name__


def blocks(config: Any) -> int:
    """Counts the blocks of the model that a configuration describes."""
    if not hasattr(config, "stages"):
        return int(config.depth)
    return sum(len(stage) if isinstance(stage, str) else stage for stage in config.stages)
