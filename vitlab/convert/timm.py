"""timm's vision transformers, opened by name or as minivit's: the same numbers, our names."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from minivit.catalogue import near
from minivit.patches import pair
from minivit.preprocessing import Preprocess
from minivit.vit import ViT
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
MODELS = ("VisionTransformer", "VisionTransformerDistilled")
# Modules that our ViT has a part for, or that do nothing in evaluation mode.
PARTS = {
    *("PatchEmbed", "Sequential", "Block", "Attention", "Mlp", "GluMlp", "LayerScale"),
    *("AttentionPoolLatent", "LayerNorm", "Linear", "Conv2d", "Identity", "Dropout", "DropPath"),
    *("PatchDropout", "GELU", "GELUTanh", "QuickGELU", "SiLU"),
}
# What others have that our ViT has not.
OTHERS = {
    "Eva": "rotary positions or its own blocks (EVA, DINOv3, Perception Encoder)",
    "SwinTransformer": "windows whose tokens are merged from stage to stage",
    "SwinTransformerV2": "windows whose tokens are merged from stage to stage",
    "Cait": "blocks of class attention after the others",
    "Beit": "relative positions in attention",
    "VisionTransformerRelPos": "relative positions in attention",
    "VisionTransformerSAM": "windows and relative positions",
    "NaFlexVit": "patches in any number and their own positions",
    "RmsNorm": "RMSNorm in place of LayerNorm",
    "SwiGLU": "a gated MLP with a norm inside",
    "ParallelScalingBlock": "attention and MLP side by side",
    "ParallelThingsBlock": "several attentions and MLPs side by side",
    "ResPostBlock": "norms after attention and MLP, inside the residual",
    "HybridEmbed": "a convolutional network in place of the patch embedding",
}


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
    if isinstance(source, Mapping) == (name is None):
        raise ValueError(
            "expected a module, which says itself what it is, or from_timm(state, name), with "
            f"timm's name of the architecture: got a {type(source).__name__} and name={name!r}"
        )
    module: Any = source if isinstance(source, nn.Module) else _with_weights(name, source)
    difference = next(_differences(module), None)
    if difference is not None:
        raise ValueError(f"expected timm's VisionTransformer, as minivit has it: got {difference}")
    distilled = type(module).__name__ == "VisionTransformerDistilled"
    normed = not isinstance(module.fc_norm, nn.Identity)
    model = convert_state_dict(
        module.state_dict(),
        NAMES,
        image_size=tuple(module.patch_embed.img_size),
        pool="class+register" if distilled else POOLS[module.global_pool],
        norm_after_pool=normed and module.global_pool != "token",  # of one token it is the same
        **module_settings(module),
    )
    if getattr(module, "pretrained_cfg", None):
        _describe(model, module)
    return model.train(module.training)


def _with_weights(name: str | None, state: Mapping[str, Tensor]) -> nn.Module:
    """timm's module of this name with these numbers."""
    head = state.get("head.weight")
    with torch.device("meta"):
        classes = 0 if head is None else len(head)
        module: nn.Module = library("timm").create_model(name, num_classes=classes)
    try:
        module.load_state_dict(state, assign=True)
    except RuntimeError as error:
        why = " ".join(str(error).split())
        raise ValueError(f"these weights are not those of timm's {name}: {why}") from error
    return module.eval()


def _differences(model: Any) -> Iterator[str]:
    """What our ViT would compute in another way."""
    kind = type(model).__name__
    if kind not in MODELS or not hasattr(model, "patch_embed"):
        yield f"{kind}, with {OTHERS[kind]}" if kind in OTHERS else kind
    for name, part in model.named_children():
        yield from _other_parts(name, part)
    normed = not isinstance(model.fc_norm, nn.Identity)
    differences = {
        f"global_pool={model.global_pool!r}": model.global_pool not in POOLS,
        "a pool of all tokens, not of the patches alone": model.pool_include_prefix,
        "a norm that no token goes through": normed and kind == "VisionTransformerDistilled",
        "no norm after the blocks": not normed and isinstance(model.norm, nn.Identity),
        "no positions": model.pos_embed is None,
        "images that are padded": model.patch_embed.dynamic_img_pad,
        "a norm of patches": not isinstance(model.patch_embed.norm, nn.Identity),
    }
    yield from (what for what, there in differences.items() if there)


def _other_parts(parent: str, module: nn.Module) -> Iterator[str]:
    for name, part in module.named_modules(prefix=parent):
        kind = type(part).__name__
        if kind not in PARTS:
            yield f"{OTHERS.get(kind, kind)} in {name}"
        if kind == "Attention":
            parts: Any = part
            norms = (parts.q_norm, parts.k_norm, parts.norm)
            if parts.gate is not None or not all(isinstance(p, nn.Identity) for p in norms):
                yield f"norms or gates inside {name}"


def _describe(model: ViT, module: Any) -> None:
    """What timm knows of the model beside its numbers."""
    from timm.data import resolve_model_data_config

    model.licence = module.pretrained_cfg.get("license")
    if classes := timm_classes(module):
        model.classes = classes
    size = pair(model.config.image_size)
    try:
        preprocess = timm_preprocess(resolve_model_data_config(module))
    except ValueError:  # an interpolation or padding that Preprocess does not have
        return
    if preprocess.size != size:
        preprocess = replace(preprocess, size=size, resize=size)
    if len(preprocess.mean) == model.config.channels:
        model.preprocess = preprocess


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
    """What ``timm.data.create_transform`` makes of a ``timm.data.resolve_model_data_config``.

    Raises:
        ValueError: It pads an image, or interpolates in another way.
    """
    size = config["input_size"][1:]
    if config["crop_mode"] not in ("center", "squash"):
        raise ValueError(f"expected crop_mode center or squash: got {config['crop_mode']}")
    return Preprocess(
        size,
        tuple(math.floor(n / config["crop_pct"]) for n in size),  # type: ignore[arg-type]
        config["interpolation"],
        tuple(config["mean"]),
        tuple(config["std"]),
        stretch=config["crop_mode"] == "squash",
    )


def open_timm(name: str, untrained: bool) -> LoadedModel:
    """A model of timm, with the weights of its tag, or its default ones."""
    timm = library("timm")
    model_name = name.partition(":")[2]
    architecture = model_name.partition(".")[0]
    if ":" not in model_name and not timm.is_model(architecture):
        hint = near(architecture, timm.list_models())
        hint = hint if hint.startswith("did") else "timm.list_models() lists them"
        raise ValueError(f"timm has no model {model_name!r}: {hint}")

    def build_untrained() -> nn.Module:
        return ready(timm.create_model(model_name, pretrained=False))

    with fetching(name):
        model: Any = ready(timm.create_model(model_name, pretrained=not untrained))
    preprocess, why = attempt(lambda: timm_preprocess(timm.data.resolve_model_data_config(model)))
    licence = None if untrained else model.pretrained_cfg.get("license")
    return LoadedModel(model, preprocess, timm_classes(model), name, licence, build_untrained, why)
