"""Vision transformers from scratch, small enough to read, and the instruments to look inside them.

Tensors are ``[batch, channels, height, width]`` images and ``[batch, tokens, dim]`` tokens.
The packages ``minivit.analysis``, ``data``, ``figures``, ``inversion`` and ``training`` load when
touched.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from minivit.hub.files import save
from minivit.hub.huggingface import from_huggingface
from minivit.hub.loading import load
from minivit.hub.preprocessing import Preprocess
from minivit.hub.timm import from_timm
from minivit.hub.torchvision import from_torchvision
from minivit.hub.zoo import create, models
from minivit.networks.hybrid import Hybrid, HybridConfig
from minivit.networks.mixer import Mixer, MixerConfig
from minivit.networks.resnet import ResNet, ResNetConfig
from minivit.networks.variants import ViTVariant, ViTVariantConfig
from minivit.networks.vit import (
    MultiHeadAttention,
    ViT,
    ViTConfig,
    attention_weights,
    scaled_dot_product_attention,
)
from minivit.recording import record, replace
from minivit.surgery import remove, transplant

__version__ = "0.1.0"
__all__ = [
    "Hybrid",
    "HybridConfig",
    "Mixer",
    "MixerConfig",
    "MultiHeadAttention",
    "Preprocess",
    "ResNet",
    "ResNetConfig",
    "ViT",
    "ViTConfig",
    "ViTVariant",
    "ViTVariantConfig",
    "attention_weights",
    "create",
    "from_huggingface",
    "from_timm",
    "from_torchvision",
    "load",
    "models",
    "record",
    "remove",
    "replace",
    "save",
    "scaled_dot_product_attention",
    "transplant",
]

_WHEN_TOUCHED = {"analysis", "data", "figures", "inversion", "training"}

if TYPE_CHECKING:  # which then still finds names that there are not
    from minivit import analysis as analysis
    from minivit import data as data
    from minivit import figures as figures
    from minivit import inversion as inversion
    from minivit import training as training
else:

    def __getattr__(name: str) -> Any:
        if name in _WHEN_TOUCHED:
            return import_module(f"minivit.{name}")
        raise AttributeError(f"module 'minivit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(globals().keys() | _WHEN_TOUCHED)
