"""Which of timm's models are minivit's ViT in all parts: others are refused, with what differs."""

from typing import Any

from torch import nn

from vitlab.convert.saying import activation_of, check_scale

POOLS = {"token": "class", "avg": "mean", "map": "attention"}  # timm's, ours
# Modules that our ViT has a part for, or that do nothing in evaluation mode.
KNOWN = {
    *("VisionTransformer", "VisionTransformerDistilled", "PatchEmbed", "Sequential", "Block"),
    *("Attention", "Mlp", "LayerScale", "AttentionPoolLatent", "LayerNorm", "Linear", "Conv2d"),
    *("Identity", "Dropout", "DropPath", "PatchDropout", "GELU", "GELUTanh", "QuickGELU"),
    *("GluMlp", "SiLU"),
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


def check_taken(module: Any) -> None:
    """Refuses what our ViT would compute in another way."""
    for name, part in module.named_modules():
        kind = type(part).__name__
        if kind not in KNOWN and (name or kind in OTHERS):
            what = OTHERS.get(kind, f"a {kind}")
            raise ValueError(f"minivit's ViT does not have {what}: got it in {name or 'the model'}")
        if not name and (kind not in KNOWN or not hasattr(part, "patch_embed")):
            raise ValueError(f"expected timm's VisionTransformer: got {kind}")
        if kind == "Attention":
            check_scale(name, part.scale, part.head_dim)
            others = (part.q_norm, part.k_norm, part.norm)
            if part.gate is not None or not all(isinstance(p, nn.Identity) for p in others):
                raise ValueError(f"minivit's attention has no norms or gates inside: got {part}")
    behind = not isinstance(module.fc_norm, nn.Identity)
    for fits, what in (
        (module.global_pool in POOLS, f"global_pool={module.global_pool!r}"),
        (not module.pool_include_prefix, "a pool of all tokens, not of the patches alone"),
        (not (behind and distilled(module)), "a norm that no token goes through"),
        (behind or not isinstance(module.norm, nn.Identity), "no norm after the blocks"),
        (module.pos_embed is not None, "no positions"),
        (not module.patch_embed.dynamic_img_pad, "images that are padded"),
        (isinstance(module.patch_embed.norm, nn.Identity), "a norm of patches"),
    ):
        if not fits:
            raise ValueError(f"cannot convert a model of timm with {what}")


def distilled(module: nn.Module) -> bool:
    """Whether a model of timm has two heads, one of which has learned from a teacher."""
    return type(module).__name__ == "VisionTransformerDistilled"


def mlp_activation(mlp: Any, name: str) -> str:
    """Our name of what an MLP does between its maps."""
    if type(mlp).__name__ != "GluMlp":
        return activation_of(mlp.act, f"{name}.act")
    if mlp.gate_last or not isinstance(mlp.act, nn.SiLU) or mlp.norm.__class__ is not nn.Identity:
        raise ValueError(f"expected a SwiGLU in {name}, gates first and without a norm: got {mlp}")
    return "swiglu"
