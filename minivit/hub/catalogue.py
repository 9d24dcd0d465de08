"""The catalogue of untrained models: torchvision's names and sizes, and small ones."""

from typing import Any

from minivit.networks.hybrid import HybridConfig, alternate
from minivit.networks.mixer import MixerConfig
from minivit.networks.model import Config
from minivit.networks.resnet import ResNetConfig
from minivit.networks.vit import ViTConfig

V1, V2 = "IMAGENET1K_V1", "IMAGENET1K_V2"
SWAG = ("IMAGENET1K_SWAG_E2E_V1", "IMAGENET1K_SWAG_LINEAR_V1")
BASE: dict[str, Any] = {"dim": 768, "depth": 12, "heads": 12}
LARGE: dict[str, Any] = {"dim": 1024, "depth": 24, "heads": 16}
HUGE: dict[str, Any] = {"dim": 1280, "depth": 32, "heads": 16}
# What makes a Mixer the feed-forward model of Melas-Kyriazi (2021).
FEEDFORWARD: dict[str, Any] = {
    "first": "mlp",
    "mixing_norm": "tokens",
    "positions": "learned",
    "pool": "class",
}

# Name -> configuration, and the names of torchvision's weights for it.
MODELS: dict[str, tuple[Config, tuple[str, ...]]] = {
    "vit_b_16": (ViTConfig(patch_size=16, **BASE), (V1, *SWAG)),
    "vit_b_32": (ViTConfig(patch_size=32, **BASE), (V1,)),
    "vit_l_16": (ViTConfig(patch_size=16, **LARGE), (V1, *SWAG)),
    "vit_l_32": (ViTConfig(patch_size=32, **LARGE), (V1,)),
    "vit_h_14": (ViTConfig(patch_size=14, **HUGE), SWAG),
    # 8 x 8 images in grey, scikit-learn's digits: 16 tokens
    "vit_8px": (
        ViTConfig(8, 2, 1, 10, dim=64, depth=4, heads=4, mlp_ratio=2, pool="mean"),
        (),
    ),
    # 32 x 32 images in colour, CIFAR-10's format: 64 tokens
    "vit_32px": (
        ViTConfig(32, 4, 3, 10, dim=128, depth=6, heads=4, mlp_ratio=2, pool="mean"),
        (),
    ),
    # Tolstikhin et al. (2021); in the small ones the hidden widths have the same proportions to dim
    "mixer_b_16": (MixerConfig(), ()),
    "mixer_8px": (MixerConfig(8, 2, 1, 10, dim=64, depth=4, mixing_hidden=32), ()),
    "mixer_32px": (MixerConfig(32, 4, 3, 10, dim=128, depth=6, mixing_hidden=64), ()),
    # Melas-Kyriazi (2021): both hidden layers four times as wide as what they read
    "feedforward_b_16": (MixerConfig(mixing_hidden=4 * 197, **FEEDFORWARD), ()),
    "feedforward_8px": (
        MixerConfig(8, 2, 1, 10, dim=64, depth=4, mixing_hidden=4 * 17, **FEEDFORWARD),
        (),
    ),
    "feedforward_32px": (
        MixerConfig(32, 4, 3, 10, dim=128, depth=6, mixing_hidden=4 * 65, **FEEDFORWARD),
        (),
    ),
    "resnet18": (ResNetConfig(block="basic", stages=(2, 2, 2, 2)), (V1,)),
    "resnet34": (ResNetConfig(block="basic", stages=(3, 4, 6, 3)), (V1,)),
    "resnet50": (ResNetConfig(stages=(3, 4, 6, 3)), (V1, V2)),
    "resnet101": (ResNetConfig(stages=(3, 4, 23, 3)), (V1, V2)),
    "resnet152": (ResNetConfig(stages=(3, 8, 36, 3)), (V1, V2)),
    # ResNet-8 and ResNet-14 of the paper's section 4.2, 6n + 2 layers
    "resnet_8px": (ResNetConfig(8, 1, 10, "3x3", "basic", (1, 1, 1), 16), ()),
    "resnet_32px": (ResNetConfig(32, 3, 10, "3x3", "basic", (2, 2, 2), 16), ()),
    # By AlterNet's rules, from a ResNet-14 of width 32
    "alternet_32px": (
        HybridConfig(stages=alternate((2, 2, 2), (0, 1, 1)), widths=(32, 64, 128), heads=(2, 4, 8)),
        (),
    ),
    # 256, 64 and 16 tokens, as in PiT
    "pit_32px": (
        HybridConfig(
            stem="patch",
            patch_size=2,
            stages=("tt", "tt", "tt"),
            widths=(48, 96, 192),
            heads=(3, 6, 12),
        ),
        (),
    ),
    # vit_32px on a ResNet's feature map, which has as many places as that has patches
    "hybrid_32px": (
        HybridConfig(
            stages=("c", "c", "c", "tttttt"), widths=(16, 32, 64, 128), heads=(1, 1, 1, 4)
        ),
        (),
    ),
}
