"""Vision transformers from scratch, small enough to read: what the book builds.

Tensors are ``[batch, channels, height, width]`` images and ``[batch, tokens, dim]`` tokens. The
instruments that look inside a model are in the package ``vitlab``.
"""

from minivit.catalogue import create, models
from minivit.files import save
from minivit.hybrid import Hybrid, HybridConfig
from minivit.loading import load
from minivit.mixer import Mixer, MixerConfig
from minivit.preprocessing import Preprocess
from minivit.recording import record
from minivit.replacing import replace
from minivit.resnet import ResNet, ResNetConfig
from minivit.surgery import remove, transplant
from minivit.torchvision import from_torchvision
from minivit.variants import ViTVariant, ViTVariantConfig
from minivit.vit import (
    MultiHeadAttention,
    ViT,
    ViTConfig,
    attention_weights,
    scaled_dot_product_attention,
)

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
