"""A ViT of ours from the state dict and the settings of another library's.

What others split is joined here, and what they leave out is filled in with zeros or identities.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from minivit.families import build
from minivit.model import check_state
from minivit.patches import grid_of
from minivit.variants import config_of
from minivit.vit import ViT
from vitlab.calls import expect

# By the name of a module's class, our name of a GELU.
GELUS = {
    **dict.fromkeys(("GELU", "GELUActivation"), "gelu"),
    **dict.fromkeys(("GELUTanh", "NewGELUActivation"), "tanh"),
    **dict.fromkeys(("QuickGELU", "QuickGELUActivation"), "quick"),
}


def module_settings(model: nn.Module) -> dict[str, Any]:
    """The number of heads, eps of norms and activation, which all blocks must have alike."""
    heads, eps, activations = {}, {}, {}
    for name, part in model.named_modules():
        if isinstance(part, nn.LayerNorm):
            eps[name] = part.eps
        number = getattr(part, "num_attention_heads", getattr(part, "num_heads", None))
        if number is not None:
            heads[name] = number
        scale = getattr(part, "scaling", getattr(part, "scale", None))
        if isinstance(scale, float) and not math.isclose(scale, part.head_dim**-0.5):
            root = f"sqrt({part.head_dim})"
            raise ValueError(f"expected scores divided by {root} in {name}: got {1 / scale:g}")
        for attribute in ("act", "act_fn", "activation_fn"):  # timm's, and Hugging Face's
            if isinstance(activation := getattr(part, attribute, None), nn.Module):
                activations[name] = _activation(part, activation, name)
    return {
        "heads": _common_value(heads, "number of heads"),
        "norm_eps": _common_value(eps, "eps of LayerNorm"),
        "activation": _common_value(activations, "activation"),
    }


def _activation(mlp: Any, activation: nn.Module, name: str) -> str:
    """Our name of what an MLP does between its maps."""
    kind = type(activation).__name__
    gated = type(mlp).__name__.endswith(("GluMlp", "SwiGLUFFN", "SwiGLU", "GatedMLP"))
    gates_first = not getattr(mlp, "gate_last", False)
    plain = isinstance(getattr(mlp, "norm", nn.Identity()), nn.Identity)
    plain = plain or type(mlp).__name__ == "SwiGLU"  # of timm's EVA-02, with a norm of its own
    if gated and kind in ("SiLU", "SiLUActivation") and gates_first and plain:
        return "swiglu"
    if not gated and kind in GELUS:
        approximate = getattr(activation, "approximate", "none")  # torch's GELU has the setting
        return "tanh" if approximate == "tanh" else GELUS[kind]
    raise ValueError(
        f"expected a GELU, or a SwiGLU with the gates first and no norm in {name}: got {mlp}"
    )


def _common_value(values: Mapping[str, Any], what: str) -> Any:
    """The value that all parts of a model have."""
    first: dict[Any, str] = {}
    for name, value in values.items():
        first.setdefault(value, name)
    names = ", ".join(f"{value} in {name}" for value, name in first.items())
    expect(len(first) == 1, f"the same {what} in the whole model", names or "none")
    return next(iter(first))


def convert_state_dict(
    state: dict[str, Tensor],
    names: Mapping[str, str],
    make: Callable[[Any], nn.Module] = build,
    pool_heads: int | None = None,
    **settings: Any,
) -> ViT:
    """Makes a ViT of another library's state dict; the numbers are copied.

    ``names`` are patterns of parts of the library's keys, each with what replaces it, in this
    order. The keys are then ours, and some more: ``registers``; in the blocks ``attention.q``,
    ``k`` and ``v`` for ``qkv``, and ``mlp.gates`` and ``values`` for ``up``; ``pool.latent``, a
    query that ``pool.q`` projects; ``second_head``. ``settings`` are what no shape tells; ``make``
    builds the model of a configuration.
    """
    for pattern, ours in names.items():
        state = {re.sub(pattern, ours, key): tensor.detach() for key, tensor in state.items()}
    dim, channels, height, width = state["patch_embedding.projection.weight"].shape
    grid = grid_of(settings["image_size"], (height, width))
    layers = {key.split(".")[1] for key in state if key.startswith("blocks.")}
    _fill(state)
    for i in layers:
        _join(state, f"blocks.{i}.mlp", ("gates", "values"), "up")
        _join(state, f"blocks.{i}.attention", "qkv", "qkv")
    registers = _tokens(state, grid[0] * grid[1], settings["pool"])
    if settings["pool"] == "attention":
        _query(state, pool_heads or settings["heads"])
    _head(state, dim, settings["pool"])
    config = config_of(
        **settings,
        patch_size=(height, width),
        channels=channels,
        classes=len(state["head.weight"]),
        dim=dim,
        depth=len(layers),
        mlp_ratio=state["blocks.0.mlp.down.weight"].shape[1] / dim,
        registers=registers or None,
        embedding_norm="positions.norm.weight" in state,
        layer_scale=1e-5 if "blocks.0.attention.scale" in state else None,
    )
    with torch.device("meta"):  # no memory and no random numbers for what is replaced at once
        model: Any = make(config)
    check_state(state, model.state_dict())
    copies = {key: tensor.clone() for key, tensor in state.items()}
    model.load_state_dict(copies, assign=True)
    return model


def _join(state: dict[str, Tensor], part: str, names: Iterable[str], joined: str) -> None:
    """Maps of the same input become one, in this order, where there are such."""
    for kind in ("weight", "bias"):
        keys = [f"{part}.{name}.{kind}" for name in names]
        if all(key in state for key in keys):
            state[f"{part}.{joined}.{kind}"] = torch.cat([state.pop(key) for key in keys])


def _fill(state: dict[str, Tensor]) -> None:
    """Layers without a bias get one of zeros."""
    for key, weight in [(key, t) for key, t in state.items() if key.endswith(".weight")]:
        state.setdefault(f"{key.removesuffix('weight')}bias", weight.new_zeros(len(weight)))


def _tokens(state: dict[str, Tensor], patches: int, pool: str) -> int:
    """Class token and registers become one table; gives the number of registers."""
    table = state["positions.table"]
    table = table.reshape(-1, table.shape[-1])
    tokens = [state.pop(key) for key in ("class_token", "registers") if key in state]
    first = torch.cat([table[:0], *(token.reshape(-1, table.shape[-1]) for token in tokens)])
    positions = len(table) - patches  # of tokens that are no patches: the first ones of them
    what = f"positions of {patches} to {patches + len(first)} tokens"
    expect(0 <= positions <= len(first), what, len(table))
    reads = int(pool.startswith("class"))
    own = table[:reads] if positions else table.new_zeros(reads, table.shape[1])
    added = torch.cat([own * 0, table[reads:positions]])  # positions that go into the tokens
    first = first + nn.functional.pad(added, (0, 0, 0, len(first) - len(added)))
    state["positions.table"] = torch.cat([own, table[positions:]])
    if len(first):
        state["class_token"] = first[None]
    return len(first) - reads


def _query(state: dict[str, Tensor], heads: int) -> None:
    """A query and its projection become the projected query, [heads, 1, d_head]."""
    latent = state.pop("pool.latent").flatten()  # [dim]
    for kind in ("weight", "bias"):
        if (qkv := state.pop(f"pool.in_proj_{kind}", None)) is not None:
            state[f"pool.q.{kind}"], state[f"pool.kv.{kind}"] = qkv.tensor_split([len(latent)])
    weight, bias = state.pop("pool.q.weight"), state.pop("pool.q.bias")
    state["pool.query"] = (weight @ latent + bias).view(heads, 1, -1)


def _head(state: dict[str, Tensor], dim: int, pool: str) -> None:
    """The mean of two heads is one that reads both tokens, and no head is the identity."""
    if "head.weight" not in state:
        width = dim if pool == "class+register" else dim * (1 + pool.count("+"))
        state["head.weight"] = torch.eye(width).to(state["positions.table"])
        if pool == "class+register":
            state["second_head.weight"] = state["head.weight"]
    _fill(state)
    if "second_head.weight" in state:
        weights = [state.pop("head.weight"), state.pop("second_head.weight")]
        biases = [state.pop("head.bias"), state.pop("second_head.bias")]
        state["head.weight"] = torch.cat(weights, 1) / 2
        state["head.bias"] = (biases[0] + biases[1]) / 2
