"""The same ViT from five libraries, each at the fastest setting its documentation names.

All are eager float32 with torch's fused attention, which is what every one of them documents as the
fast path on the CPU; none compiles. Weights are random: speed does not depend on them.

vit-pytorch's fast model is ``SimpleViT``, which has no class token (49 tokens instead of 50, 196
instead of 197) and no biases in its attention: 2 % and 0.5 % less work than the others do.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

import minivit
from minivit.import_torchvision import imported, mend

PATCH = {"vit_b_32": 32, "vit_b_16": 16}


class Logits(nn.Module):
    """A Hugging Face classifier that returns its logits like the others."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        return self.model(images).logits


def _torchvision(name: str) -> nn.Module:
    return imported().models.get_model(name)


def _timm(name: str) -> nn.Module:
    mend()  # timm imports torchvision itself
    import timm

    return timm.create_model(f"vit_base_patch{PATCH[name]}_224")


def _transformers(name: str) -> nn.Module:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(patch_size=PATCH[name], num_labels=1000, attn_implementation="sdpa")
    return Logits(ViTForImageClassification(config))


def _vit_pytorch(name: str) -> nn.Module:
    from vit_pytorch.simple_flash_attn_vit import SimpleViT

    return SimpleViT(
        image_size=224, patch_size=PATCH[name], num_classes=1000,
        dim=768, depth=12, heads=12, mlp_dim=3072, use_flash=True,
    )  # fmt: skip


LIBRARIES: dict[str, Callable[[str], nn.Module]] = {
    "minivit": minivit.create,
    "torchvision": _torchvision,
    "timm": _timm,
    "transformers": _transformers,
    "vit-pytorch": _vit_pytorch,
}


def build(library: str, name: str) -> nn.Module:
    """A ViT of a library in evaluation mode.

    Args:
        library: A key of ``LIBRARIES``.
        name: ``"vit_b_32"`` or ``"vit_b_16"``.
    """
    torch.manual_seed(0)
    return LIBRARIES[library](name).eval()
