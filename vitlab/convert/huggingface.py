"""Hugging Face's vision transformers as minivit's: the same numbers under our names."""

from typing import Any

from torch import nn

from minivit.vit import ViT
from vitlab.convert.assembling import assembled, renamed
from vitlab.convert.huggingface_parts import settings_of
from vitlab.convert.other_libraries import huggingface_classes
from vitlab.convert.other_preprocessing import huggingfaces

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
    ("mlp.gate_proj.", "mlp.gates."),
    ("mlp.up_proj.", "mlp.values."),
    ("mlp.down_proj.", "mlp.down."),
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
UNREAD = ("mask_token", "pooler.")  # in training by masks alone; of no classifier


def from_huggingface(model: nn.Module, processor: Any = None) -> ViT:
    """Makes minivit's ViT of one of Hugging Face's, equal to it at its image size.

    It takes, with the classes of transformers 5, ViT, DeiT (with a teacher too), DINOv2 with
    registers or without, and the image towers of CLIP and SigLIP::

        theirs = transformers.AutoModel.from_pretrained("facebook/dinov2-small")
        model = vitlab.from_huggingface(theirs)

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
            prepares images in another way than :class:`~minivit.preprocessing.Preprocess` can.
    """
    settings = settings_of(model)
    siglip = type(model).__name__ == "SiglipVisionModel"
    state = {
        key: tensor
        for key, tensor in model.state_dict().items()
        if not any(part in key for part in UNREAD)
    }
    state = renamed(state, (*EMBEDDINGS, *(POOL if siglip else ()), *NAMES))
    if siglip:
        _split_pool(state)
    made = assembled(state, **settings)
    if classes := huggingface_classes(model):
        made.classes = classes
    if processor is not None:
        made.preprocess = huggingfaces(processor)
    return made.train(model.training)


def _split_pool(state: dict[str, Any]) -> None:
    """q, k and v of ``nn.MultiheadAttention`` are one map: q apart from k and v."""
    for kind in ("weight", "bias"):
        both = state.pop(f"pool.in_proj_{kind}")
        dim = len(both) // 3
        state[f"pool.q.{kind}"], state[f"pool.kv.{kind}"] = both[:dim], both[dim:]
