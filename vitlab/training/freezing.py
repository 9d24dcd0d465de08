"""Parts of a model that training leaves as they are."""

import re
from fnmatch import fnmatchcase

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook

from minivit.model import Model
from minivit.patches import pair


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
    depth = len(list(model.get_submodule("blocks").children()))
    chosen: set[str] = set()
    for part in (part.strip() for part in parts.split(",")):
        if part == "backbone":
            found = {name for name in names if not name.startswith("head.")}
        elif part.isdecimal() and 1 <= int(part) <= depth:
            found = _first(model, int(part))
        else:
            found = _named(names, part)
        if not found or set(names) == chosen | found:
            tops = dict.fromkeys(name.partition(".")[0] for name in names)
            raise ValueError(
                f"expected parts to freeze, of {', '.join(tops)}, or such as blocks.0-3, or a "
                f"number of first blocks, 1 to {depth}, or backbone, and something left to "
                f"train: got {part!r} of {parts!r}"
            )
        chosen |= found
    for name, parameter in model.named_parameters():
        if name in chosen:
            parameter.requires_grad_(False)


def _named(names: list[str], part: str) -> set[str]:
    """The parameters of a part; of a range such as ``blocks.0-3`` nothing if one is not there."""
    patterns = [part]
    if limits := re.search(r"(?<=\.)(\d+)-(\d+)(?=\.|$)", part):
        numbers = range(int(limits[1]), int(limits[2]) + 1)
        patterns = [f"{part[: limits.start()]}{n}{part[limits.end() :]}" for n in numbers]
    found = [{n for n in names if fnmatchcase(f"{n}.", f"{pattern}.*")} for pattern in patterns]
    return set().union(*found) if all(found) else set()


@torch.no_grad()
def _first(model: Model, count: int) -> set[str]:
    """The parameters of the first blocks, and of all that runs before them."""
    blocks = list(model.get_submodule("blocks").children())
    begun: list[nn.Module] = []
    hook = register_module_forward_pre_hook(lambda module, args: begun.append(module))
    training, first = model.training, next(model.parameters())
    try:
        model.eval()(
            torch.zeros(1, model.config.channels, *pair(model.config.image_size)).to(first)
        )
    finally:
        hook.remove()
        model.train(training)
    before = begun[: begun.index(blocks[count - 1])]
    modules = [m for m in before if m is not model and not set(m.modules()) & set(blocks)]
    kept = {id(p) for m in (*modules, *blocks[:count]) for p in m.parameters()}
    kept |= {id(p) for p in model.parameters(recurse=False)}  # a class token
    return {name for name, p in model.named_parameters() if id(p) in kept}


def frozen(model: nn.Module) -> list[str]:
    """The names of the parts that are frozen as a whole: the largest modules, or parameters."""
    found: list[str] = []
    for name, module in model.named_modules():
        parts = [(name, list(module.parameters()))] if name else []
        parts += [(key, [p]) for key, p in module.named_parameters(name, recurse=False)]
        for part, parameters in parts:
            inside = any(part.startswith(f"{whole}.") for whole in found)
            if parameters and not inside and not any(p.requires_grad for p in parameters):
                found.append(part)
    return found


def frozen_modules(model: nn.Module) -> list[nn.Module]:
    """The largest modules that are frozen as a whole."""
    modules = dict(model.named_modules())
    return [modules[name] for name in frozen(model) if name in modules]
