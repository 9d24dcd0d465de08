"""timm's vision transformers as minivit's: the same numbers under our names."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from minivit.patches import pair
from minivit.vit import ViT
from vitlab.convert.assembling import assembled, renamed
from vitlab.convert.opened import library
from vitlab.convert.other_libraries import timm_classes
from vitlab.convert.other_preprocessing import timms
from vitlab.convert.saying import the_one
from vitlab.convert.timm_parts import POOLS, check_taken, distilled, mlp_activation

# Parts of a key: timm's, ours. In this order.
NAMES = (
    ("patch_embed.proj.", "patch_embedding.projection."),
    ("cls_token", "class_token"),
    ("reg_token", "registers"),
    ("dist_token", "registers"),
    ("pos_embed", "positions.table"),
    ("norm_pre.", "positions.norm."),
    ("fc_norm.", "norm."),
    ("attn_pool.proj.", "pool.out."),
    ("attn_pool.", "pool."),
    (".attn.qkv.", ".attention.qkv."),
    (".attn.proj.", ".attention.out."),
    ("ls1.gamma", "attention.scale"),
    ("ls2.gamma", "mlp.scale"),
    ("mlp.fc1.", "mlp.up."),
    ("mlp.fc2.", "mlp.down."),
    ("head_dist.", "second_head."),
)


def from_timm(source: nn.Module | Mapping[str, Tensor], name: str | None = None) -> ViT:
    """Makes minivit's ViT of timm's ``VisionTransformer``, equal to it at its image size.

    It takes ViT, AugReg, DeiT (distilled too), DeiT III, DINO, MAE, DINOv2 with registers or
    without, giant included, models that pool by the mean, with the last norm before or after it,
    and the image towers of CLIP and SigLIP::

        model = vitlab.from_timm(timm.create_model("vit_small_patch14_dinov2", pretrained=True))

    Every number is used once and is copied; the source stays as it is, and the copy has its dtype,
    device and mode. A model without a classifier gives its pooled features, and ``classes`` is
    their number. ``preprocess``, ``classes`` and ``licence`` come with it where timm knows them.
    What counts in training alone, such as dropout, is left out; for images of another size minivit
    interpolates positions in its own way.

    Args:
        source: The module, or its state dict.
        name: timm's name of the architecture, which a state dict does not tell.

    Raises:
        ValueError: A part that minivit's ViT does not have, such as rotary positions; or a state
            dict that does not fit the name.
        ModuleNotFoundError: For a state dict, timm is not installed.
    """
    if isinstance(source, Mapping):
        source = _filled(source, name)
    elif name is not None:
        raise ValueError(f"a module says itself what it is: got name={name!r}")
    module: Any = source
    check_taken(module)
    parts = dict(module.named_modules())
    norms = {n: part.eps for n, part in parts.items() if isinstance(part, nn.LayerNorm)}
    acts = {n: mlp_activation(part, n) for n, part in parts.items() if n.endswith("mlp")}
    heads = {n: part.num_heads for n, part in parts.items() if hasattr(part, "num_heads")}
    behind = not isinstance(module.fc_norm, nn.Identity)
    model = assembled(
        renamed(module.state_dict(), NAMES),
        image_size=tuple(module.patch_embed.img_size),
        heads=the_one(heads, "number of heads"),
        pool="class+register" if distilled(module) else POOLS[module.global_pool],
        norm_eps=the_one(norms, "eps of LayerNorm"),
        norm_after_pool=behind and module.global_pool != "token",  # of one token it is the same
        activation=the_one(acts, "activation"),
    )
    _describe(model, module)
    return model.train(module.training)


def _filled(state: Mapping[str, Tensor], name: str | None) -> nn.Module:
    """timm's module of this name with these numbers."""
    if name is None:
        raise ValueError(
            "a state dict does not tell its heads, norms and activations: expected "
            "from_timm(state, name), with timm's name of the architecture"
        )
    timm = library("timm")
    head = state.get("head.weight")
    with torch.device("meta"):
        module = timm.create_model(name, num_classes=0 if head is None else len(head))
    try:
        module.load_state_dict(state, assign=True)
    except RuntimeError as error:
        why = " ".join(str(error).split())
        raise ValueError(f"these weights are not those of timm's {name}: {why}") from error
    return module.eval()


def _describe(model: ViT, module: Any) -> None:
    """What timm knows of the model beside its numbers."""
    config = getattr(module, "pretrained_cfg", None)
    if not config:
        return
    from timm.data import resolve_model_data_config

    model.licence = config.get("license")
    if classes := timm_classes(module):
        model.classes = classes
    size = pair(model.config.image_size)
    try:
        preprocess = timms(resolve_model_data_config(module))
    except ValueError:  # an interpolation or padding that Preprocess does not have
        return
    if preprocess.size != size:
        preprocess = replace(preprocess, size=size, resize=size)
    if len(preprocess.mean) == model.config.channels:
        model.preprocess = preprocess
