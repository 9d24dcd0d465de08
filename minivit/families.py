"""The families of models: which class is built from which configuration."""

from typing import Any

from minivit.hybrid import Hybrid, HybridConfig
from minivit.mixer import Mixer, MixerConfig
from minivit.model import Config, Model, Removed
from minivit.resnet import ResNet, ResNetConfig
from minivit.surgery import remove
from minivit.variants import ViTVariant, ViTVariantConfig
from minivit.vit import ViT, ViTConfig

FAMILIES: dict[type[Config], type[Model]] = {
    ViTConfig: ViT,
    ViTVariantConfig: ViTVariant,
    MixerConfig: Mixer,
    ResNetConfig: ResNet,
    HybridConfig: Hybrid,
}
OURS = (
    f"a model of minivit's ({', '.join(f'minivit.{kind.__name__}' for kind in FAMILIES.values())})"
)


def build(config: Config, removed: Removed = ()) -> Model:
    """Makes the untrained model that a configuration describes, without the parts removed."""
    model: Any = FAMILIES[type(config)](config)
    for part, blocks in removed:
        model = remove(model, part, blocks)
    return model


def family(config: Config) -> str:
    """Names the family of a configuration: ``"ViT"`` for a ``ViTConfig``."""
    return FAMILIES[type(config)].__name__
