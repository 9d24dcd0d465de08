"""The parts of a model from any library that claims speak of, found by watching it run."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from minivit.hooks import before
from minivit.recording import one, record, runnable, tensors_in, weights_of
from vitlab.claims.measuring import Subject, require
from vitlab.instruments.attentions import attentions
from vitlab.instruments.blocks import row_of_blocks
from vitlab.instruments.residuals import branches
from vitlab.instruments.running import evaluating

FIRST = "first map"  # what the first block reads
NO_ATTENTION = "has no attention in a residual branch"


def sublayers(model: nn.Module, images: Tensor) -> tuple[list[str], list[str]]:
    """The residual branches with attention, and the MLPs, which have no spatial convolutions."""
    names = list(dict.fromkeys(branches(model, images)))
    ran = False
    try:
        with evaluating(model), record(model, *map(weights_of, names)) as recorded:
            model(images[:1])
            ran = True
    except RuntimeError:  # at the end for modules in which no attention was heard: the others
        if not ran:
            raise
    attention = [name for name in names if weights_of(name) in recorded]
    others = [name for name in names if name not in attention] if attention else []

    def convolves(name: str) -> bool:
        parts = [part for part in one(model, name).modules() if isinstance(part, nn.Conv2d)]
        return any(part.kernel_size != (1, 1) for part in parts)

    return attention, [name for name in others if not convolves(name)]


def mlps_of(model: nn.Module, images: Tensor) -> list[str]:
    """The MLPs, at least one."""
    _, mlps = sublayers(model, images)  # none without attention
    require(mlps, "does not have residual branches of both kinds, attention and MLP")
    return mlps


def attention_of(model: nn.Module, images: Tensor) -> list[str]:
    """The branches with attention, at least one."""
    attention, _ = sublayers(model, images)
    require(attention, NO_ATTENTION)
    return attention


def attends(model: nn.Module, images: Tensor) -> bool:
    """Whether a model computes attention between tokens."""
    try:
        return bool(attentions(model, images))
    except ValueError as error:
        return "computes no attention" not in str(error)


def require_attention(model: nn.Module, images: Tensor) -> None:
    """Refuses a model of which nobody claims this; in its blocks attention may be anywhere."""
    require(attends(model, images[:1]), NO_ATTENTION)


def compared(subject: Subject) -> tuple[nn.Module, nn.Module]:
    """The model, which has attention, and the other, which has none; never the other way round, so
    that a pair is measured once."""
    pair = subject.model, subject.second()
    mine, other = (attends(model, subject.images[:1]) for model in pair)
    either = "the second has it" if other else "neither has it"
    either = "both have it" if mine and other else either
    what = f"compares a model with attention with a second without: of these, {either}"
    require(mine and not other, what)
    return pair


def row_of_layers(model: nn.Module, images: Tensor) -> list[str]:
    """The blocks of a transformer or Mixer, or else those of a convolutional network."""
    try:
        return row_of_blocks(model, images)
    except ValueError:
        if len(maps := _row_of_maps(model, images)) < 2:
            raise
        return maps


def _row_of_maps(model: nn.Module, images: Tensor) -> list[str]:
    """The innermost modules in rows, from map to map, that hold two convolutions or more."""
    rows: list[str] = []
    for name, module in runnable(model).items():
        parent = model.get_submodule(name.rpartition(".")[0])
        convolutions = sum(isinstance(part, nn.Conv2d) for part in module.modules())
        if name and isinstance(parent, nn.ModuleList | nn.Sequential) and convolutions > 1:
            rows.append(name)
    inner = [a for a in rows if not any(b.startswith(f"{a}.") for b in rows)]
    if not inner:
        return []
    with evaluating(model), record(model, *inner, detach=True) as maps:
        model(images[:1])
    return [name for name, x in maps.items() if isinstance(x, Tensor) and x.ndim == 4]


def read_by(model: nn.Module, name: str, copied: bool = True) -> Callable[[Tensor], Tensor]:
    """What a module reads, or a copy of it, as a function of the model's images, with gradients."""

    def function(images: Tensor) -> Tensor:
        inputs: list[Tensor] = []

        def keep(module: nn.Module, args: Any, kwargs: Any) -> None:
            x = tensors_in((args, kwargs))[0]
            inputs.append(x.clone() if copied else x)  # the module may work in place

        with before(one(model, name), keep):
            model(images)
        return inputs[-1]

    return function


def outputs(
    model: nn.Module, images: Tensor, names: list[str], batch_size: int
) -> dict[str, Tensor]:
    """What the first of named parts reads of images, as :data:`FIRST`, and what each gives."""
    kept: dict[str, list[Tensor]] = {}
    for batch in images.split(batch_size):
        with evaluating(model), record(model, *names, detach=True) as recorded:
            first = read_by(model, names[0])(batch)
        for name, x in {FIRST: first, **{name: recorded[name] for name in names}}.items():
            each = isinstance(x, Tensor) and len(x) == len(batch)
            require(each, f"{name!r} gives no tensor with an entry for each image")
            kept.setdefault(name, []).append(x.cpu())
    return {name: torch.cat(parts) for name, parts in kept.items()}
