"""Parts taken out of a model, or put in from another. The model given is not modified.

Parts have the model's own names. In the blocks: ``"attention"`` (of a ViT) or ``"mixing"`` (of a
Mixer), ``"mlp"``, ``"norm1"``, ``"norm2"``. ``"norm"`` is every norm: both in the blocks and, where
no blocks are named, the final one.
"""

from collections.abc import Collection
from copy import deepcopy
from numbers import Integral
from typing import Any

import torch
from torch import Tensor, nn

from minivit.hybrid import Hybrid, HybridConfig
from minivit.mixer import FeedForwardBlock, Mixer, MixerBlock, MixerConfig
from minivit.model import Config, Model, Removed, check_state, check_structure, structure
from minivit.parts import EmbeddedPositions, WithoutPositions
from minivit.positions import NoPositions
from minivit.resnet import ResNet, ResNetConfig
from minivit.shapes import Mask, Tokens
from minivit.variants import PostNormBlock, ViTVariant, ViTVariantConfig
from minivit.vit import BRANCHES, Block, ViT, ViTConfig


class Nothing(nn.Module):
    """A branch that adds nothing to the residual stream."""

    def forward(self, x: Tokens, mask: Mask | None = None) -> Tokens:
        return torch.zeros_like(x)


class Same(nn.Module):
    """The identity: a removed branch of a block without residual connections."""

    def forward(self, x: Tokens, mask: Mask | None = None) -> Tokens:
        return x


class NoResidualBlock(Block):
    """A :class:`~minivit.vit.Block` without the residual connections."""

    def forward(self, x: Tokens, mask: Mask | None = None) -> Tokens:
        x = self.attention(self.norm1(x), mask)
        return self.mlp(self.norm2(x))


class NoResidualPostNormBlock(PostNormBlock):
    """The same of a :class:`~minivit.variants.PostNormBlock`."""

    def forward(self, x: Tokens, mask: Mask | None = None) -> Tokens:
        x = self.norm1(self.attention(x, mask))
        return self.norm2(self.mlp(x))


class NoResidualMixerBlock(MixerBlock):
    """The same of a :class:`~minivit.mixer.MixerBlock`."""

    def forward(self, x: Tokens, mask: Mask | None = None) -> Tokens:
        x = self.mixing(self.norm1(x))
        return self.mlp(self.norm2(x))


class NoResidualFeedForwardBlock(FeedForwardBlock):
    """The same of a :class:`~minivit.mixer.FeedForwardBlock`."""

    def forward(self, x: Tokens, mask: Mask | None = None) -> Tokens:
        x = self.mlp(self.norm1(x))
        return self.mixing(self.norm2(x))


WITHOUT_RESIDUAL: dict[type[nn.Module], type[nn.Module]] = {
    Block: NoResidualBlock,
    PostNormBlock: NoResidualPostNormBlock,
    MixerBlock: NoResidualMixerBlock,
    FeedForwardBlock: NoResidualFeedForwardBlock,
}


WHOLE = ("patch_embedding", "class_token", "positions", "pool", "head")  # parts not in the blocks


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
        model: A ViT or a Mixer.
        part: What to remove.
        blocks: The numbers of the blocks to remove it from, such as ``range(4)``. Default: all.

    Raises:
        TypeError: Another model; other libraries' go through
            :func:`~minivit.torchvision.from_torchvision` or its sisters first.
        ValueError: There is no such part or block, or the model has stochastic depth, which leaves
            nothing without residuals.
    """
    copy = deepcopy(_checked(model))
    removable = [*_in_blocks(copy), "norm", "residual", "positions"]
    if part not in removable:
        raise ValueError(_no_part(copy, part, removable))
    for name in _names(copy, part, blocks):
        owner, _, last = name.rpartition(".")
        holder: Any = copy.get_submodule(owner)
        if part == "residual":
            _without_residual(holder, copy.config.stochastic_depth)
        else:
            residual = type(holder) not in WITHOUT_RESIDUAL.values()
            new = _in_place_of(last, getattr(holder, last), residual)
            setattr(holder, last, new.train(holder.training))
    copy.removed += ((part, None if blocks is None else tuple(int(i) for i in blocks)),)
    return copy


def _in_place_of(part: str, old: nn.Module, residual: bool) -> nn.Module:
    if isinstance(old, EmbeddedPositions):
        return old.removed()
    if part == "positions":
        return old if isinstance(old, WithoutPositions) else NoPositions()
    if part in BRANCHES:
        return Nothing() if residual else Same()
    return nn.Identity()


def _without_residual(block: nn.Module, stochastic_depth: float) -> None:
    if stochastic_depth:
        raise ValueError(
            "stochastic depth leaves a branch out, and without residuals nothing remains: "
            f"got stochastic_depth={stochastic_depth}"
        )
    if type(block) not in WITHOUT_RESIDUAL.values():
        block.__class__ = WITHOUT_RESIDUAL[type(block)]  # the same parts, another forward
    for name, branch in list(block.named_children()):
        if isinstance(branch, Nothing):
            setattr(block, name, Same().train(block.training))


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
        TypeError: Other models; other libraries' go through
            :func:`~minivit.torchvision.from_torchvision` or its sisters first.
        ValueError: There is no such part or block, there are no numbers in it, or it has other
            shapes or settings in one model than in the other.
    """
    states, structures = [], []
    for model in _checked(source), _checked(target):
        known = [*_in_blocks(model), "norm", "blocks", *WHOLE]
        if part not in known:
            raise ValueError(_no_part(model, part, known))
        names = _names(model, part, blocks)
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
    copy = deepcopy(_checked(target))
    copy.load_state_dict(cast, strict=False)
    return copy


def _checked(model: Model) -> ViT:
    if not isinstance(model, ViT):
        raise TypeError(
            f"expected a minivit.ViT or minivit.Mixer: got {type(model).__name__}. Those of other "
            "libraries go through vitlab.from_timm, from_huggingface or from_torchvision first"
        )
    return model


def _in_blocks(model: ViT) -> list[str]:
    """The parts that each block of this model has, or had until they were removed."""
    return [part for part in (*BRANCHES, "norm1", "norm2") if hasattr(model.blocks[0], part)]


def _no_part(model: Model, part: str, parts: list[str]) -> str:
    return f"a {type(model).__name__} has no part {part!r}: expected {', '.join(parts)}"


def _names(model: ViT, part: str, blocks: Collection[int] | None) -> list[str]:
    """The names of the modules that a part consists of; of blocks, where it is the residuals."""
    if part in WHOLE:
        if blocks is not None:
            raise ValueError(f"{part!r} is not in the blocks: got blocks={blocks!r}")
        return [part]
    every = range(len(model.blocks))
    numbers = every if blocks is None else blocks
    if not isinstance(numbers, Collection) or not all(_is_whole(i) and i in every for i in numbers):
        raise ValueError(
            f"blocks have numbers from 0 to {every[-1]}, several in a list or range: got {blocks!r}"
        )
    if part == "blocks":
        return [f"blocks.{i}" for i in numbers]
    parts = ["norm1", "norm2"] if part == "norm" else [part]
    final = ["norm"] if part == "norm" and blocks is None else []
    return [f"blocks.{i}.{part}" for i in numbers for part in parts] + final


def _is_whole(number: Any) -> bool:
    """Whether it is a whole number of Python's, NumPy's or torch's, and neither true nor false."""
    if isinstance(number, Tensor):
        return not (number.dtype.is_floating_point or number.dtype == torch.bool)
    return isinstance(number, Integral) and not isinstance(number, bool)


def _structure(model: ViT, part: str, names: list[str]) -> dict[str, Any]:
    """How a part is built, with the grid of patches where its numbers are for positions on it."""
    built = _within(names, structure(model))
    if part == "positions" or {"Mixing", "TokenNorm"} & set(map(str, built.values())):
        built["positions.grid"] = model.config.grid
    return built


def _within(names: list[str], found: dict[str, Any]) -> dict[str, Any]:
    """What lies under these names."""
    return {k: v for k, v in found.items() if any(f"{k}.".startswith(f"{n}.") for n in names)}


FAMILIES: dict[type[Config], type[Model]] = {
    ViTConfig: ViT,
    ViTVariantConfig: ViTVariant,
    MixerConfig: Mixer,
    ResNetConfig: ResNet,
    HybridConfig: Hybrid,
}
NAMES = ", ".join(f"minivit.{kind.__name__}" for kind in FAMILIES.values())
OURS = f"a model of minivit's ({NAMES})"


def build(config: Config, removed: Removed = ()) -> Model:
    """Makes the untrained model that a configuration describes, without the parts removed."""
    model: Any = FAMILIES[type(config)](config)
    for part, blocks in removed:
        model = remove(model, part, blocks)
    return model


def family(config: Config) -> str:
    """Names the family of a configuration: ``"ViT"`` for a ``ViTConfig``."""
    return FAMILIES[type(config)].__name__


def blocks(config: Any) -> int:
    """Counts the blocks of the model that a configuration describes."""
    if not hasattr(config, "stages"):
        return int(config.depth)
    return sum(len(stage) if isinstance(stage, str) else stage for stage in config.stages)
