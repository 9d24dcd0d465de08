"""ViTs with rotary positions, of timm and Hugging Face: EVA-02, DINOv3, the Perception Encoder."""

from collections.abc import Mapping
from copy import deepcopy
from functools import partial
from typing import Any

import torch
from torch import Tensor

from minivit.patches import pair
from minivit.shapes import Size
from minivit.vit import ViT
from vitlab.convert.modern import RotaryViT, Rotation
from vitlab.convert.state_dict import convert_state_dict, module_settings

# Parts of a key of timm's EVA beside those of its ViT: timm's, ours.
EVA = {
    r"\.attn\.([qkv])_proj\.": r".attention.\1.",
    r"gamma_1$": "attention.scale",
    r"gamma_2$": "mlp.scale",
    r"mlp\.fc1_g\.": "mlp.gates.",
    r"mlp\.fc1_x\.": "mlp.values.",
}
PARTS = {"ModuleList", "EvaBlock", "EvaAttention", "AttentionRope", "SwiGLU"}
PARTS |= {"RotaryEmbeddingCat", "RotaryEmbeddingDinoV3"}


def from_eva(theirs: Any, names: Mapping[str, str], **settings: Any) -> ViT:
    """timm's ``Eva``, after what differs from ours was looked for."""
    state = dict(theirs.state_dict())
    for i, block in enumerate(theirs.blocks):
        if block.attn.qkv is not None and f"blocks.{i}.attn.q_bias" in state:
            q, v = (state.pop(f"blocks.{i}.attn.{name}_bias") for name in "qv")
            state[f"blocks.{i}.attn.qkv.bias"] = torch.cat([q, torch.zeros_like(q), v])
    shape = list(theirs.patch_embed.grid_size) if theirs.dynamic_img_size else None
    sin, cos = theirs.rope.get_embed(shape).chunk(2, -1)
    parts: dict[str, Any] = {
        "hidden_norm": "blocks.0.mlp.norm.weight" in state,
        "last_norm": "norm.weight" in state or "fc_norm.weight" in state,
    }
    if theirs.attn_pool is not None:
        parts["pool_heads"] = theirs.attn_pool.num_heads
        parts["pool_hidden"] = len(state["attn_pool.mlp.fc1.weight"])
    half, settings = theirs.blocks[0].attn.rotate_half, settings | module_settings(theirs.blocks)
    return turned(state, EVA | dict(names), (cos, sin), half, parts, **settings)


def from_dinov3(
    theirs: Any, state: dict[str, Tensor], names: Mapping[str, str], size: Size | None
) -> ViT:
    """Hugging Face's ``DINOv3ViTModel``: its ``pooler_output``."""
    config = theirs.config
    image_size = pair(size or config.image_size)
    some = theirs.norm.weight.new_zeros(1, config.num_channels, *image_size)
    turns = deepcopy(theirs.rope_embeddings).eval()(some)
    if not config.use_gated_mlp:
        state = {key.replace("mlp.up_proj", "mlp.fc1"): tensor for key, tensor in state.items()}
    settings = module_settings(theirs.model.layer) | {"image_size": image_size, "pool": "class"}
    return turned(state, {r"^model\.layer\.": "blocks."} | dict(names), turns, True, {}, **settings)


def turned(
    state: dict[str, Tensor],
    names: Mapping[str, str],
    turns: tuple[Tensor, Tensor],
    half: bool,
    parts: Mapping[str, Any],
    **settings: Any,
) -> ViT:
    """A ViT that turns queries and keys by cosines and sines, ``[patches, d_head]`` each.

    ``half``: a pair is features j and j + d_head / 2. Queries and keys are then written in the
    order of ours, 2j and 2j + 1, which leaves their products as they are.
    """
    pairs = turns[0].shape[1] // 2
    cos, sin = (t[:, :pairs] if half else t[:, ::2] for t in turns)
    make = partial(RotaryViT, rotation=Rotation(cos.clone(), sin.clone()), **parts)
    if "pos_embed" not in state:  # there is no table beside the turns
        dim = next(len(t) for t in state.values() if t.ndim == 4)
        state["positions.table"] = cos.new_zeros(len(cos), dim)
    model: Any = convert_state_dict(state, names, make, parts.get("pool_heads"), **settings)
    if half:
        order = torch.arange(2 * pairs).view(2, pairs).T.flatten()
        for block in model.blocks:
            for weight in (block.attention.qkv.weight, block.attention.qkv.bias):
                shaped = weight.data.unflatten(0, (3, -1, 2 * pairs))  # [3, heads, d_head, ...]
                shaped[:2] = shaped[:2, :, order]
    return model
