"""Hugging Face's vision transformers as minivit's: the same numbers under our names."""

from typing import Any

from torch import nn

from minivit.hub.assembling import assembled, renamed
from minivit.hub.other_libraries import huggingface_classes
from minivit.hub.other_preprocessing import huggingfaces
from minivit.hub.saying import activation_of, check_scale, the_one
from minivit.networks.patches import pair
from minivit.networks.vit import ViT

# Parts of a key: transformers', ours. In this order.
NAMES = (
    ("vision_model.", ""),
    ("vit.", ""),
    ("deit.", ""),
    ("dinov2.", ""),
    ("dinov2_with_registers.", ""),
    ("embeddings.", ""),
    ("encoder.layers.", "blocks."),
    ("encoder.layer.", "blocks."),
    ("patch_projection.", "patch_embedding.projection."),
    ("layers.", "blocks."),
    ("cls_token", "class_token"),
    ("class_embedding", "class_token"),
    ("register_tokens", "registers"),
    ("distillation_token", "registers"),
    ("pre_layrnorm.", "positions.norm."),
    ("post_layernorm.", "norm."),
    ("layernorm_before.", "norm1."),
    ("layernorm_after.", "norm2."),
    ("layer_norm1.", "norm1."),
    ("layer_norm2.", "norm2."),
    ("layernorm.", "norm."),
    ("self_attn.", "attention."),
    ("attention.out_proj.", "attention.out."),
    ("attention.o_proj.", "attention.out."),
    ("attention.q_proj.", "attention.q."),
    ("attention.k_proj.", "attention.k."),
    ("attention.v_proj.", "attention.v."),
    ("layer_scale1.lambda1", "attention.scale"),
    ("layer_scale2.lambda1", "mlp.scale"),
    ("mlp.fc1.", "mlp.up."),
    ("mlp.fc2.", "mlp.down."),
    ("cls_classifier.", "head."),
    ("distillation_classifier.", "second_head."),
    ("classifier.", "head."),
    ("visual_projection.", "head."),
)
# Under a name that contains another one of ours.
EMBEDDINGS = (
    ("embeddings.patch_embeddings.projection.", "patch_projection."),
    ("embeddings.patch_embedding.", "patch_projection."),
    ("embeddings.position_embeddings", "positions.table"),
    ("embeddings.position_embedding.weight", "positions.table"),
)
# SigLIP's pool, whose name is that of our head.
POOL = (
    ("head.probe", "pool.latent"),
    ("head.attention.", "pool."),
    ("pool.out_proj.", "pool.out."),
    ("head.layernorm.", "pool.norm."),
    ("head.mlp.fc1.", "pool.mlp.up."),
    ("head.mlp.fc2.", "pool.mlp.down."),
)
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
UNREAD = ("mask_token", "pooler.")  # in training by masks alone; of no classifier
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


def from_huggingface(model: nn.Module, processor: Any = None) -> ViT:
    """Makes minivit's ViT of one of Hugging Face's, equal to it at its image size.

    It takes, with the classes of transformers 5, ViT, DeiT (with a teacher too), DINOv2 with
    registers or without, and the image towers of CLIP and SigLIP::

        theirs = transformers.AutoModel.from_pretrained("facebook/dinov2-small")
        model = minivit.from_huggingface(theirs)

    Every number that the result needs is used once and copied; the source stays as it is, and the
    copy has its dtype, device and mode. What it gives are the ``logits`` of a classifier, the
    ``image_embeds`` of ``CLIPVisionModelWithProjection``, and of a model without a head its pooled
    features: ``pooler_output``, but for ViT and DeiT ``last_hidden_state[:, 0]``, since no
    classifier reads their pooler. ``classes`` are the model's ``id2label``. What counts in training
    alone, such as dropout, is left out; for images of another size minivit interpolates positions
    in its own way.

    Args:
        model: One of transformers'.
        processor: Its image processor, if ``preprocess`` is to be the same.

    Raises:
        ValueError: Another model, or a part that minivit's ViT does not have; or a processor that
            prepares images in another way than :class:`~minivit.hub.preprocessing.Preprocess` can.
    """
    kind = type(model).__name__
    if kind not in POOLS:
        for start, what in OTHERS.items():
            if kind.startswith(start):
                raise ValueError(f"minivit's ViT does not have {what}: got a {kind}")
        raise ValueError(f"expected one of {', '.join(POOLS)} of transformers: got {kind}")
    tower: Any = model
    settings = _settings(tower, kind)
    state = {
        key: tensor
        for key, tensor in model.state_dict().items()
        if not any(part in key for part in UNREAD)
    }
    attention = POOL if kind == "SiglipVisionModel" else ()
    state = renamed(state, (*EMBEDDINGS, *attention, *NAMES))
    if kind == "SiglipVisionModel":
        _split_pool(state)
    made = assembled(state, pool=POOLS[kind], **settings)
    if classes := huggingface_classes(model):
        made.classes = classes
    if processor is not None:
        made.preprocess = huggingfaces(processor)
    return made.train(model.training)


def _settings(model: Any, kind: str) -> dict[str, Any]:
    """Reads from the modules what no shape tells, and refuses what our ViT does in another way."""
    norms, activations, heads = {}, {}, {}
    for name, part in model.named_modules():
        if name.startswith("pooler"):
            continue
        if isinstance(part, nn.LayerNorm):
            norms[name] = part.eps
        if name.endswith("activation_fn"):
            activations[name] = activation_of(part, name)
        if type(part).__name__.endswith("SwiGLUFFN"):
            raise ValueError(f"minivit's ViT does not have a gated MLP (SwiGLU): got it in {name}")
        count = getattr(part, "num_attention_heads", getattr(part, "num_heads", None))
        if count is not None:
            heads[name] = count
        scale = getattr(part, "scaling", getattr(part, "scale", None))
        if isinstance(scale, float):
            check_scale(name, scale, part.head_dim)
    if getattr(model.config, "vision_use_head", True) is False:
        raise ValueError("expected a SiglipVisionModel with its head, which pools: got one without")
    return {
        "image_size": pair(_size(model.config.image_size)),
        "heads": the_one(heads, "number of heads"),
        "norm_eps": the_one(norms, "eps of LayerNorm"),
        "activation": the_one(activations, "activation"),
    }


def _size(size: Any) -> Any:
    return size if isinstance(size, int) else tuple(size)


def _split_pool(state: dict[str, Any]) -> None:
    """q, k and v of ``nn.MultiheadAttention`` are one map: q apart from k and v."""
    for kind in ("weight", "bias"):
        both = state.pop(f"pool.in_proj_{kind}")
        dim = len(both) // 3
        state[f"pool.q.{kind}"], state[f"pool.kv.{kind}"] = both[:dim], both[dim:]
