"""Vision transformers from scratch, small enough to read: what the book builds.

Tensors are ``[batch, channels, height, width]`` images and ``[batch, tokens, dim]`` tokens. The
instruments that look inside a model are in the package ``vitlab``.
"""

from functools import wraps

from minivit import vit
from minivit.catalogue import create, models
from minivit.files import save
from minivit.hybrid import Hybrid, HybridConfig
from minivit.loading import load
from minivit.mixer import Mixer, MixerConfig
from minivit.model import check_attention, checked_sizes
from minivit.preprocessing import Preprocess
from minivit.recording import record
from minivit.replacing import replace
from minivit.resnet import ResNet, ResNetConfig
from minivit.shapes import Attended, Keys, Mask, Queries, Values, Weights
from minivit.surgery import remove, transplant
from minivit.torchvision import from_torchvision
from minivit.variants import ViTVariant, ViTVariantConfig
from minivit.vit import MultiHeadAttention, ViT, ViTConfig

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


MultiHeadAttention.__init__ = checked_sizes(MultiHeadAttention.__init__)  # type: ignore[method-assign]


@wraps(vit.attention_weights)
def attention_weights(q: Queries, k: Keys, mask: Mask | None = None) -> Weights:
    check_attention(q, k, mask)
    return vit.attention_weights(q, k, mask)


@wraps(vit.scaled_dot_product_attention)
def scaled_dot_product_attention(
    q: Queries, k: Keys, v: Values, mask: Mask | None = None
) -> Attended:
    check_attention(q, k, mask, v)
    return vit.scaled_dot_product_attention(q, k, v, mask)
