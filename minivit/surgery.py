"""Parts taken out of a model, or put in from another. The model given is not modified.

Parts have the model's own names. In the blocks: ``"attention"`` (of a ViT) or ``"mixing"`` (of a
Mixer), ``"mlp"``, ``"norm1"``, ``"norm2"``. ``"norm"`` is every norm: both in the blocks and, where
no blocks are named, the final one.
"""

from collections.abc import Collection
from copy import deepcopy
from operator import index
from typing import Any

import torch
from torch import nn

from minivit.mixer import FeedForwardBlock, MixerBlock
from minivit.model import Model, check_state, check_structure, structure
from minivit.parts import EmbeddedPositions, WithoutPositions
from minivit.positions import NoPositions
from minivit.shapes import Mask, Tokens
from minivit.stochastic_depth import BRANCHES
from minivit.variants import PostNormBlock
from minivit.vit import Block, MultiHeadAttention, ViT

WHOLE = ("patch_embedding", "class_token", "positions", "pool", "head")  # parts not in the blocks


class Zero(nn.Module):
    """A removed branch: it adds nothing to the residual stream."""

    def forward(self, x: Tokens, mask: Mask | None = None) -> Tokens:
        return torch.zeros_like(x)


class NoResidualBlock(nn.Module):
    """A block's parts one after the other: nothing is added to their inputs.

    A branch that was removed passes on its input.
    """

    ORDER = {
        Block: ("norm1", "attention", "norm2", "mlp"),
        PostNormBlock: ("attention", "norm1", "mlp", "norm2"),
        MixerBlock: ("norm1", "mixing", "norm2", "mlp"),
        FeedForwardBlock: ("norm1", "mlp", "norm2", "mixing"),
    }

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.order = self.ORDER[type(block)]
        for name, part in block.named_children():  # in the order of the block's parameters
            self.add_module(name, nn.Identity() if isinstance(part, Zero) else part)
        self.train(block.training)

    def forward(self, x: Tokens, mask: Mask | None = None) -> Tokens:
        for name in self.order:
            part = getattr(self, name)
            x = part(x, mask) if isinstance(part, MultiHeadAttention) else part(x)
        return x


def remove(model: Model, part: str, blocks: Collection[int] | None = None) -> ViT:
    """Gives a copy of a model without one of its parts; all other numbers are the same.

    - ``"attention"``, ``"mixing"``, ``"mlp"``: the branch adds nothing to the residual stream;
      without residuals it passes on its input. Its norm stays.
    - ``"norm"``, ``"norm1"``, ``"norm2"``: the identity; their scales and shifts go too.
    - ``"residual"``: a block passes on its branches without adding them to their inputs.
    - ``"positions"``: nothing is added to the tokens.

    Parts may be removed in any order, before training or after. ``removed`` of the copy names them,
    and :func:`~minivit.files.save` stores them.

    Args:
        model: A ViT or a Mixer; other libraries' are converted first.
        part: What to remove.
        blocks: The numbers of the blocks to remove it from, such as ``range(4)``. Default: all.
    """
    names = _names(model, part, blocks, [*_in_blocks(model), "norm", "residual", "positions"])
    copy: Any = deepcopy(model)
    if part == "residual" and copy.config.stochastic_depth:
        rate = f"stochastic_depth={copy.config.stochastic_depth}"
        raise ValueError(f"without residuals nothing remains of a branch left out: got {rate}")
    for name in names:
        owner, _, last = name.rpartition(".")
        holder = copy.get_submodule(owner)
        new = _without(holder, last)
        setattr(holder, last, new.train(holder.training))
    copy.removed += ((part, None if blocks is None else tuple(int(i) for i in blocks)),)
    return copy


def _without(holder: Any, name: str) -> nn.Module:
    """What takes the place of a part."""
    old = getattr(holder, name)
    if isinstance(holder, nn.ModuleList):  # of blocks
        return old if isinstance(old, NoResidualBlock) else NoResidualBlock(old)
    if isinstance(old, EmbeddedPositions):
        return WithoutPositions(old.norm)
    if name == "positions":
        return old if isinstance(old, WithoutPositions) else NoPositions()
    residual = not isinstance(holder, NoResidualBlock)
    return Zero() if name in BRANCHES and residual else nn.Identity()


def transplant(
    source: Model, target: Model, part: str, blocks: Collection[int] | None = None
) -> ViT:
    """Gives a copy of a model in which the numbers of one part are those of another model.

    Args:
        source: A ViT or a Mixer, from which the numbers come.
        target: A ViT or a Mixer in which the part is built alike, up to dropout. The copy has its
            dtype and device.
        part: ``"patch_embedding"``, ``"class_token"``, ``"positions"``, ``"blocks"`` as a whole,
            ``"attention"``, ``"mixing"``, ``"mlp"``, ``"norm1"``, ``"norm2"``, ``"norm"``,
            ``"pool"`` or ``"head"``.
        blocks: The numbers of the blocks, the same in both models. Default: all.

    Raises:
        ValueError: The part has other shapes or settings in one model than in the other.
    """
    states, structures = [], []
    for model in source, target:
        names = _names(model, part, blocks, [*_in_blocks(model), "norm", "blocks", *WHOLE])
        states.append(_within(names, model.state_dict()))
        structures.append(_structure(model, part, names))
    if names and not any(states):
        raise ValueError(f"there are no parameters to transplant in {part!r} of either model")
    try:
        check_state(*states)
        check_structure(*structures)
        cast = {key: tensor.to(states[1][key]) for key, tensor in states[0].items()}
        check_state(cast, states[1])  # float16 has no number above 65504
    except ValueError as error:
        raise ValueError(f"cannot transplant {part!r}: {error}") from error
    copy: Any = deepcopy(target)
    copy.load_state_dict(cast, strict=False)
    return copy


def _in_blocks(model: Any) -> list[str]:
    """The parts that each block of this model has, or had until they were removed."""
    if not isinstance(model, ViT):
        others = "convert others by from_torchvision, vitlab.from_timm or from_huggingface"
        raise TypeError(f"expected a ViT or Mixer of minivit: got {type(model).__name__}; {others}")
    return [part for part in (*BRANCHES, "norm1", "norm2") if hasattr(model.blocks[0], part)]


def _names(
    model: Any, part: str, blocks: Collection[int] | None, parts: Collection[str]
) -> list[str]:
    if part not in parts:
        kind = type(model).__name__
        raise ValueError(f"expected one of {', '.join(parts)} of a {kind}: got {part!r}")
    every = [] if part in WHOLE else range(len(model.blocks))
    try:
        numbers = list(every if blocks is None else map(_whole, blocks))
    except TypeError:
        numbers = [-1]
    if not set(numbers) <= set(every):
        where = f"blocks from 0 to {every[-1]}, in a list or range" if every else "no blocks"
        raise ValueError(f"expected {where} for {part!r}: got {blocks!r}")
    if part in WHOLE:
        return [part]
    if part in ("blocks", "residual"):
        return [f"blocks.{i}" for i in numbers]
    names = ["norm1", "norm2"] if part == "norm" else [part]
    final = ["norm"] if part == "norm" and blocks is None else []
    return [f"blocks.{i}.{name}" for i in numbers for name in names] + final


def _whole(number: Any) -> int:
    """A whole number of Python's, NumPy's or torch's; -1 for True and False, as in a mask."""
    return -1 if getattr(number, "dtype", type(number)) in (bool, torch.bool) else index(number)


def _structure(model: Any, part: str, names: list[str]) -> dict[str, Any]:
    """How a part is built, with the grid of patches where its numbers are for positions on it."""
    built = _within(names, structure(model))
    if part == "positions" or {"Mixing", "TokenNorm"} & set(map(str, built.values())):
        built["positions.grid"] = model.config.grid
    return built


def _within(names: list[str], values: dict[str, Any]) -> dict[str, Any]:
    """What lies under these names."""
    return {k: v for k, v in values.items() if any(f"{k}.".startswith(f"{n}.") for n in names)}
