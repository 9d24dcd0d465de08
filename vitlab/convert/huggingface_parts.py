"""Which of Hugging Face's models are minivit's ViT in all parts, and what shapes do not tell."""

from typing import Any

from torch import nn

from minivit.patches import pair
from vitlab.convert.saying import activation_of, check_scale, the_one

# What each class of transformers' gives, in our words.
POOLS = {
    "ViTModel": "class",
    "ViTForImageClassification": "class",
    "DeiTModel": "class",
    "DeiTForImageClassification": "class",
    "DeiTForImageClassificationWithTeacher": "class+register",
    "Dinov2Model": "class",
    "Dinov2ForImageClassification": "class+mean",
    "Dinov2WithRegistersModel": "class",
    "Dinov2WithRegistersForImageClassification": "class+mean",
    "CLIPVisionModel": "class",
    "CLIPVisionModelWithProjection": "class",
    "SiglipVisionModel": "attention",
}
# What others have that our ViT has not.
OTHERS = {
    "DINOv3": "rotary positions",
    "Swin": "windows whose tokens are merged from stage to stage",
    "Beit": "relative positions in attention",
    "Data2Vec": "relative positions in attention",
    "Siglip2": "patches in any number",
    "CLIPModel": "text: give its vision_model",
    "SiglipModel": "text: give its vision_model",
    "ViTMAE": "a decoder, and tokens that are left out",
}


def settings_of(model: Any) -> dict[str, Any]:
    """Reads from the modules what no shape tells, and refuses what our ViT does in another way."""
    kind = type(model).__name__
    if kind not in POOLS:
        for start, what in OTHERS.items():
            if kind.startswith(start):
                raise ValueError(f"minivit's ViT does not have {what}: got a {kind}")
        raise ValueError(f"expected one of {', '.join(POOLS)} of transformers: got {kind}")
    norms, activations, heads = {}, {}, {}
    for name, part in model.named_modules():
        if name.startswith("pooler"):
            continue
        if isinstance(part, nn.LayerNorm):
            norms[name] = part.eps
        if name.endswith("activation_fn"):
            activations[name] = activation_of(part, name)
        if type(part).__name__.endswith("SwiGLUFFN"):
            if type(part.act_fn).__name__ not in ("SiLU", "SiLUActivation"):
                raise ValueError(f"expected SiLU in {name}.act_fn: got {part.act_fn}")
            activations[name] = "swiglu"
        count = getattr(part, "num_attention_heads", getattr(part, "num_heads", None))
        if count is not None:
            heads[name] = count
        scale = getattr(part, "scaling", getattr(part, "scale", None))
        if isinstance(scale, float):
            check_scale(name, scale, part.head_dim)
    if getattr(model.config, "vision_use_head", True) is False:
        raise ValueError("expected a SiglipVisionModel with its head, which pools: got one without")
    return {
        "pool": POOLS[kind],
        "image_size": pair(_size(model.config.image_size)),
        "heads": the_one(heads, "number of heads"),
        "norm_eps": the_one(norms, "eps of LayerNorm"),
        "activation": the_one(activations, "activation"),
    }


def _size(size: Any) -> Any:
    return size if isinstance(size, int) else tuple(size)
