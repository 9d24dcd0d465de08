"""Parts of a model that training leaves as they are."""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import nn

from minivit.model import Model
from minivit.patches import pair

BACKBONE = "backbone"


def freeze(model: Model, parts: str) -> None:
    """Freezes parts of a model in place: their parameters require no gradient.

    Args:
        parts: Separated by commas. A number such as ``"4"`` is the first four blocks and all that
            runs before them, ``"backbone"`` all but the head. Others are names in the model, such
            as ``"patch_embedding"``, ``"class_token"`` or ``"blocks.0.attention"``, in which
            ``0-3`` is a range of numbers and ``*`` any text: ``"blocks.0-3"``, ``"*.norm1"``.

    Raises:
        ValueError: A part that is not there or has no parameters, or nothing would be left to
            train. The model is as it was.
    """
    names = [name for name, _ in model.named_parameters()]
    chosen: set[str] = set()
    for part in (part.strip() for part in parts.split(",")):
        if part.isdecimal():
            chosen |= _first(model, int(part))
        elif part == BACKBONE:
            chosen |= {name for name in names if not name.startswith("head.")}
        else:
            for one in _numbered(part):
                chosen |= _in_part(names, one)
    if chosen == set(names):
        raise ValueError(f"nothing is left to train if {parts} is frozen")
    for name, parameter in model.named_parameters():
        if name in chosen:
            parameter.requires_grad_(False)


def frozen(model: nn.Module) -> list[str]:
    """The names of the parts that are frozen as a whole: the largest modules, or parameters."""
    found: list[str] = []
    for name, module in model.named_modules():
        inside = any(name.startswith(f"{other}.") for other in found)
        if name and not inside and _is_frozen(module):
            found.append(name)
        elif not inside:
            own = module.named_parameters(name, recurse=False)
            found += [key for key, parameter in own if not parameter.requires_grad]
    return found


def frozen_modules(model: nn.Module) -> list[nn.Module]:
    """The largest modules that are frozen as a whole."""
    modules = dict(model.named_modules())
    return [modules[name] for name in frozen(model) if name in modules]


def _is_frozen(module: nn.Module) -> bool:
    parameters = list(module.parameters())
    return bool(parameters) and not any(p.requires_grad for p in parameters)


def _numbered(part: str) -> Iterator[str]:
    """``blocks.0`` to ``blocks.3`` of ``blocks.0-3``; any other part alone."""
    if limits := re.search(r"(?<=\.)(\d+)-(\d+)(?=\.|$)", part):
        for number in range(int(limits[1]), int(limits[2]) + 1):
            yield f"{part[: limits.start()]}{number}{part[limits.end() :]}"
    else:
        yield part


def _in_part(names: list[str], part: str) -> set[str]:
    found = {name for name in names if fnmatchcase(name, part) or fnmatchcase(name, f"{part}.*")}
    if not found:
        tops = list(dict.fromkeys(name.partition(".")[0] for name in names))
        raise ValueError(
            f"expected parts to freeze, of {', '.join(tops)}, or such as blocks.0-3, or a number "
            f"of first blocks, or {BACKBONE}: got {part!r}"
        )
    return found


@torch.no_grad()
def _first(model: Model, count: int) -> set[str]:
    """The parameters of the first blocks, and of all that runs before them."""
    there: Any = model
    blocks: list[nn.Module] = list(there.blocks)
    if not 1 <= count <= len(blocks):
        raise ValueError(f"expected 1 to {len(blocks)} first blocks to freeze: got {count}")
    begun: list[nn.Module] = []
    hooks = [
        module.register_forward_pre_hook(lambda module, args: begun.append(module))
        for module in model.modules()
    ]
    training = model.training
    first = next(model.parameters())
    size = pair(model.config.image_size)
    try:
        model.eval()(torch.zeros(1, model.config.channels, *size).to(first))
    finally:
        model.train(training)
        for hook in hooks:
            hook.remove()
    before = begun[: begun.index(blocks[count - 1])]
    modules = [m for m in before if m is not model and not set(m.modules()) & set(blocks)]
    kept = {id(p) for m in (*modules, *blocks[:count]) for p in m.parameters()}
    kept |= {id(p) for p in model.parameters(recurse=False)}  # a class token
    return {name for name, p in model.named_parameters() if id(p) in kept}
