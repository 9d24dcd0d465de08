"""Small models of timm and of Hugging Face, random in every number, each with a name."""

from functools import partial

import torch
import transformers
from timm.layers import LayerNorm, SwiGLUPacked
from timm.models.deit import VisionTransformerDistilled
from timm.models.eva import Eva
from timm.models.vision_transformer import VisionTransformer

import vitlab
from tests.parity import draw

SIZES = {"img_size": 16, "patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 3, "mlp_ratio": 2, "num_classes": 5}  # fmt: skip
FEATURES = {"num_classes": 0}
CLIP = {"pre_norm": True, "act_layer": "quick_gelu", "norm_layer": partial(LayerNorm, eps=1e-5)}
SIGLIP = {"class_token": False, "global_pool": "map", "act_layer": "gelu_tanh"}
ROTARY = {"kind": Eva, "use_rot_pos_emb": True}
EVA02 = ROTARY | {"swiglu_mlp": True, "ref_feat_shape": 3}
DINOV3 = ROTARY | {
    "use_abs_pos_emb": False,
    "rope_type": "dinov3",
    "rope_temperature": 100,
    "rope_rotate_half": True,
    "num_reg_tokens": 3,
    "init_values": 1e-5,
    "use_fc_norm": False,
}
PERCEPTION = ROTARY | {
    "attn_type": "rope",
    "rope_grid_offset": 1.0,
    "rope_grid_indexing": "xy",
    "use_pre_transformer_norm": True,
    "norm_layer": CLIP["norm_layer"],
}
TIMMS = {
    "vit": {},
    "vit without a head": FEATURES,
    "vit without biases of q, k and v": {"qkv_bias": False},
    "vit without biases of its branches": {"qkv_bias": False, "proj_bias": False},
    "vit with means": {"class_token": False, "global_pool": "avg", "fc_norm": False},
    "vit with means beside a class token": {"global_pool": "avg", "fc_norm": False},
    "vit with a norm behind the mean": {"class_token": False, "global_pool": "avg"},
    "vit with a norm behind the mean, beside a class token": {"global_pool": "avg"},
    "vit with a norm behind its token": {"fc_norm": True},
    "deit distilled": {"kind": VisionTransformerDistilled},
    "deit distilled, without a head": {"kind": VisionTransformerDistilled} | FEATURES,
    "deit 3": {"init_values": 1e-6, "no_embed_class": True},
    "dinov2": {"init_values": 1e-5} | FEATURES,
    "dinov2 with registers": {"init_values": 1e-5, "reg_tokens": 3, "no_embed_class": True} | FEATURES,
    "dinov2 giant": {"init_values": 1e-5, "mlp_layer": SwiGLUPacked, "act_layer": torch.nn.SiLU} | FEATURES,
    "registers with positions": {"reg_tokens": 2},
    "clip": CLIP,
    "clip with registers": CLIP | {"reg_tokens": 2},
    "siglip": SIGLIP | FEATURES,
    "siglip with registers": SIGLIP | {"reg_tokens": 2},
    "siglip with a norm behind its pool": SIGLIP | {"fc_norm": True},
    "eva02": EVA02 | {"qkv_fused": False, "scale_mlp": True},
    "eva02 tiny": EVA02,
    "dinov3": DINOV3 | {"qkv_bias": False} | FEATURES,
    "dinov3 plus": DINOV3 | {"swiglu_mlp": True, "swiglu_align_to": 8} | FEATURES,
    "rotary without a table": ROTARY | {"use_abs_pos_emb": False, "global_pool": "token"},
    "perception encoder": PERCEPTION | {"global_pool": "map", "attn_pool_num_heads": 2, "attn_pool_mlp_ratio": 4},
    "perception encoder without a last norm": PERCEPTION | {"use_fc_norm": False, "use_post_transformer_norm": False},
}  # fmt: skip


def timms(name, dtype=torch.float64, **changes):
    changes = SIZES | TIMMS[name] | changes
    kind = changes.pop("kind", VisionTransformer)
    return draw(kind(**changes).to(dtype).eval())


HIDDEN = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "image_size": 16, "patch_size": 8}  # fmt: skip
WIDE = HIDDEN | {"intermediate_size": 48}
LABELS = {"num_labels": 5}
HUGGINGFACES = {
    "ViTModel": ("ViTConfig", WIDE),
    "ViTForImageClassification": ("ViTConfig", WIDE | LABELS),
    "DeiTModel": ("DeiTConfig", WIDE),
    "DeiTForImageClassification": ("DeiTConfig", WIDE | LABELS),
    "DeiTForImageClassificationWithTeacher": ("DeiTConfig", WIDE | LABELS),
    "Dinov2Model": ("Dinov2Config", HIDDEN),
    "Dinov2ForImageClassification": ("Dinov2Config", HIDDEN | LABELS),
    "Dinov2WithRegistersModel": ("Dinov2WithRegistersConfig", HIDDEN),
    "Dinov2WithRegistersForImageClassification": ("Dinov2WithRegistersConfig", HIDDEN | LABELS),
    "Dinov2Model, giant": ("Dinov2Config", HIDDEN | {"use_swiglu_ffn": True}),
    "CLIPVisionModel": ("CLIPVisionConfig", WIDE),
    "CLIPVisionModelWithProjection": ("CLIPVisionConfig", WIDE | {"projection_dim": 7}),
    "SiglipVisionModel": ("SiglipVisionConfig", WIDE),
    "DINOv3ViTModel": ("DINOv3ViTConfig", WIDE | {"num_register_tokens": 3}),
    "DINOv3ViTModel, plus": (
        "DINOv3ViTConfig",
        WIDE | {"use_gated_mlp": True, "hidden_act": "silu"},
    ),
}


def huggingfaces(name, dtype=torch.float64, **changes):
    config, sizes = HUGGINGFACES[name]
    kind = getattr(transformers, name.partition(",")[0])
    return draw(kind(getattr(transformers, config)(**sizes | changes)).to(dtype).eval())


class ClassTokens(torch.nn.Module):
    """A ViT or DeiT of Hugging Face's that gives its class token, and not what its pooler makes."""

    def __init__(self, model):
        super().__init__()
        self.model, self.config = model, model.config

    def forward(self, images, **settings):
        return self.model(images, **settings).last_hidden_state[:, 0]


def comparable(model):
    """The module to compare ours with."""
    return ClassTokens(model) if type(model).__name__ in ("ViTModel", "DeiTModel") else model


def converted(model):
    of_timm = isinstance(model, VisionTransformer | Eva)
    ours = vitlab.from_timm(model) if of_timm else vitlab.from_huggingface(model)
    return ours.requires_grad_(False)


EVERY = [*((timms, name) for name in TIMMS), *((huggingfaces, name) for name in HUGGINGFACES)]

# Between them registers, LayerScale, a second head, gates, a norm before the blocks, a pool.
REPRESENTATIVE = [(timms, "dinov2 with registers"), (timms, "deit distilled")]
REPRESENTATIVE += [(huggingfaces, name) for name in ("Dinov2Model, giant", "SiglipVisionModel")]
