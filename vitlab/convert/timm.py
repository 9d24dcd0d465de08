"""timm's vision transformers, opened by name or as minivit's: the same numbers, our names."""

import math
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

from torch import nn

from minivit.patches import pair
from minivit.preprocessing import Preprocess
from minivit.shapes import Size
from minivit.vit import ViT
from vitlab.calls import expect
from vitlab.convert import rotary
from vitlab.convert.loaded_model import LoadedModel, attempt, fetching, library, ready
from vitlab.convert.state_dict import convert_state_dict, module_settings

# Parts of a key: timm's, ours.
NAMES = {
    r"^patch_embed\.proj\.": "patch_embedding.projection.",
    r"^cls_token$": "class_token",
    r"^(reg_token|dist_token)$": "registers",
    r"^pos_embed$": "positions.table",
    r"^norm_pre\.": "positions.norm.",
    r"^fc_norm\.": "norm.",
    r"^attn_pool\.proj\.": "pool.out.",
    r"^attn_pool\.": "pool.",
    r"\.attn\.qkv\.": ".attention.qkv.",
    r"\.attn\.proj\.": ".attention.out.",
    r"ls1\.gamma$": "attention.scale",
    r"ls2\.gamma$": "mlp.scale",
    r"mlp\.fc1\.": "mlp.up.",
    r"mlp\.fc2\.": "mlp.down.",
    r"^head_dist\.": "second_head.",
}
POOLS = {"token": "class", "avg": "mean", "map": "attention"}  # timm's, ours
MODELS = ("VisionTransformer", "VisionTransformerDistilled", "Eva")
# Modules that our ViT has a part for, or that do nothing in evaluation mode.
PARTS = {
    *("PatchEmbed", "Sequential", "Block", "Attention", "Mlp", "GluMlp", "LayerScale"),
    *("AttentionPoolLatent", "LayerNorm", "Linear", "Conv2d", "Identity", "Dropout", "DropPath"),
    *("PatchDropout", "GELU", "GELUTanh", "QuickGELU", "SiLU"),
}


def from_timm(module: nn.Module, image_size: Size | None = None) -> ViT:
    """Makes minivit's ViT of timm's ``VisionTransformer``, equal to it at its image size, or at
    another, to which timm resamples its positions::

        theirs = timm.create_model("vit_small_patch14_dinov2", pretrained=True)  # of 518 pixels
        model = vitlab.from_timm(theirs, image_size=224)

    It takes ViT, AugReg, DeiT (distilled too), DeiT III, DINO, MAE, DINOv2 with registers or
    without, models that pool by the mean, and the image towers of CLIP and SigLIP. The copy has the
    source's dtype, device and mode; without a classifier it gives its pooled features. What counts
    in training alone, such as dropout, is left out.
    """
    theirs: Any = module
    what = next(_differences(theirs), None)
    expect(what is None, "timm's VisionTransformer, as minivit has it", what)
    if image_size is not None:
        theirs = deepcopy(theirs)
        theirs.set_input_size(pair(image_size))
    distilled = type(module).__name__ == "VisionTransformerDistilled"
    normed = not isinstance(theirs.fc_norm, nn.Identity)
    settings: dict[str, Any] = {
        "image_size": tuple(theirs.patch_embed.img_size),
        "pool": "class+register" if distilled else POOLS[theirs.global_pool],
        "norm_after_pool": normed and theirs.global_pool != "token",  # of one token it is the same
    }
    if type(module).__name__ == "Eva":
        model = rotary.from_eva(theirs, NAMES, **settings)
    else:
        settings |= module_settings(theirs)
        model = convert_state_dict(theirs.state_dict(), NAMES, **settings)
    if getattr(module, "pretrained_cfg", None):
        _describe(model, module)
    return model.train(module.training)


def _differences(model: Any) -> Iterator[str]:
    """What our ViT would compute in another way."""
    kind = type(model).__name__
    eva = kind == "Eva"
    if kind not in MODELS or not hasattr(model, "patch_embed"):
        yield kind
    for name, part in list(model.named_modules())[1:]:
        if (part_kind := type(part).__name__) not in PARTS | (rotary.PARTS if eva else set()):
            yield f"{part_kind} in {name}"
        if part_kind in ("Attention", "EvaAttention", "AttentionRope"):
            norms = (part.q_norm, part.k_norm, part.norm)
            if part.gate is not None or not all(isinstance(p, nn.Identity) for p in norms):
                yield f"norms or gates inside {name}"
            if getattr(part, "num_kv_groups", 1) > 1:
                yield f"keys that heads share in {name}"
    normed = not isinstance(model.fc_norm, nn.Identity)
    differences = {
        f"global_pool={model.global_pool!r}": model.global_pool not in POOLS,
        "a pool of all tokens, not of the patches alone": not eva and model.pool_include_prefix,
        "a norm that no token goes through": normed and kind == "VisionTransformerDistilled",
        "no norm after the blocks": not (normed or eva) and isinstance(model.norm, nn.Identity),
        "no positions": model.pos_embed is None and not eva,
        "no rotary positions": eva and model.rope is None,
        "images that are padded": model.patch_embed.dynamic_img_pad,
        "a norm of patches": not isinstance(model.patch_embed.norm, nn.Identity),
    }
    yield from (what for what, there in differences.items() if there)


def _describe(model: ViT, module: Any) -> None:
    """What timm knows of the model beside its numbers."""
    from timm.data import resolve_model_data_config

    model.licence = module.pretrained_cfg.get("license")
    if classes := timm_classes(module):
        model.classes = classes
    size = pair(model.config.image_size)
    preprocess, _ = attempt(lambda: timm_preprocess(resolve_model_data_config(module)))
    if preprocess and len(preprocess.mean) == model.config.channels:
        other = preprocess.size != size
        model.preprocess = replace(preprocess, size=size, resize=size) if other else preprocess


def timm_classes(model: Any) -> Sequence[str] | None:
    """The names of a timm model's logits: its own, or those of the ImageNet that has as many."""
    config = model.pretrained_cfg or {}
    names = config.get("label_names")
    if names is None and config.get("num_classes") == model.num_classes:
        from timm.data import ImageNetInfo, infer_imagenet_subset

        subset = infer_imagenet_subset(model)
        names = ImageNetInfo(subset).label_descriptions() if subset else None
    return list(names) if names and len(names) == model.num_classes else None


def timm_preprocess(config: Mapping[str, Any]) -> Preprocess:
    """What ``timm.data.create_transform`` makes of a ``timm.data.resolve_model_data_config``."""
    size, mode = config["input_size"][1:], config["crop_mode"]
    expect(mode in ("center", "squash"), "crop_mode center or squash", mode)
    resize: Any = tuple(math.floor(n / config["crop_pct"]) for n in size)
    mean, std = tuple(config["mean"]), tuple(config["std"])
    return Preprocess(size, resize, config["interpolation"], mean, std, mode == "squash")


def open_timm(name: str, untrained: bool) -> LoadedModel:
    """A model of timm, with the weights of its tag, or its default ones."""
    timm = library("timm")
    model_name = name.partition(":")[2]

    def build_untrained() -> nn.Module:
        return ready(timm.create_model(model_name, pretrained=False))

    with fetching(name):
        model: Any = ready(timm.create_model(model_name, pretrained=not untrained))
    preprocess, why = attempt(lambda: timm_preprocess(timm.data.resolve_model_data_config(model)))
    licence = None if untrained else model.pretrained_cfg.get("license")
    return LoadedModel(model, preprocess, timm_classes(model), name, licence, build_untrained, why)
