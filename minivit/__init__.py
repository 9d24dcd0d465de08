"""Vision transformers from scratch, small enough to read, and the instruments to look inside them.

Tensors are ``[batch, channels, height, width]`` images and ``[batch, tokens, dim]`` tokens.
"""

from minivit.attention import MultiHeadAttention, attention_weights, scaled_dot_product_attention
from minivit.conversion import from_torchvision
from minivit.files import save
from minivit.hybrid import Hybrid, HybridConfig
from minivit.loading import load
from minivit.mixer import Mixer, MixerConfig
from minivit.preprocessing import Preprocess
from minivit.recording import record
from minivit.resnet import ResNet, ResNetConfig
from minivit.surgery import remove, transplant
from minivit.vit import ViT, ViTConfig
from minivit.zoo import create, models

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
    "attention_weights",
    "create",
    "from_torchvision",
    "load",
    "models",
    "record",
    "remove",
    "save",
    "scaled_dot_product_attention",
    "transplant",
]
