"""From shell-style names to the modules of a model."""

from collections.abc import Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase

import torch
from torch import nn

COMPILED = "_orig_mod"  # where torch.compile keeps the module that it was given
# They hold modules and are never called themselves.
CONTAINERS = (nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.ParameterDict)


def weights_of(name: str) -> str:
    """The name under which the attention weights of the module ``name`` are recorded."""
    return f"{name}.weights" if name else "weights"


def runnable(model: nn.Module) -> dict[str, nn.Module]:
    """Every module that can be called, by each of its names; ``""`` is the model itself.

    What ``torch.compile`` gave has the names of what it was given.

    Raises:
        TypeError: Not a module, or a part of it runs where hooks on it are not called.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"expected an nn.Module to record: got {type(model).__name__}")
    model = getattr(model, COMPILED, model)
    modules = dict(model.named_modules(remove_duplicate=False))
    for name, module in modules.items():
        if isinstance(module, nn.DataParallel | torch.jit.ScriptModule):
            raise TypeError(
                f"cannot record inside {type(module).__name__} (module {name!r}): it runs copies "
                "of its parts, or runs them outside Python; record the module it was made from"
            )
    return {name: m for name, m in modules.items() if not isinstance(m, CONTAINERS)}


def attention_names(modules: dict[str, nn.Module]) -> list[str]:
    """Names of attention weights to suggest: of modules with "att" in their name or class."""
    return [
        weights_of(name)
        for name, module in modules.items()
        if "att" in f"{name.rpartition('.')[2]} {type(module).__name__}".lower()
    ]


def find(
    modules: dict[str, nn.Module], patterns: Iterable[str]
) -> tuple[dict[str, nn.Module], dict[str, nn.Module]]:
    """Looks patterns up.

    Args:
        modules: Modules by name, as :func:`runnable` gives them.
        patterns: Shell-style names, in which ``*`` stands for anything, dots included. One whose
            last part is ``weights`` names attention weights, unless a module has that name.

    Returns:
        The modules whose outputs are meant, by name, and those whose attention weights are meant,
        by the weights' name.

    Raises:
        LookupError: A pattern matches nothing. The message lists near names.
    """
    outputs: dict[str, nn.Module] = {}
    weights: dict[str, nn.Module] = {}
    for pattern in patterns:
        hits = {name: m for name, m in modules.items() if fnmatchcase(name, pattern)}
        outputs |= hits
        if not hits and pattern.rpartition(".")[2] == "weights":
            hits = {weights_of(name): m for name, m in modules.items()}
            hits = {name: m for name, m in hits.items() if fnmatchcase(name, pattern)}
            weights |= hits
        if not hits:
            attention = attention_names(modules)
            near = get_close_matches(pattern, [*modules, *attention], cutoff=0)
            wanted = pattern.rpartition(".")[2] == "weights"
            none = ", and nothing here looks like attention" if wanted and not attention else ""
            raise LookupError(f"no module matches {pattern!r}{none}; near names: {near}")
    return outputs, weights


def one(model: nn.Module, name: str) -> nn.Module:
    """Gives the module of this name.

    Raises:
        LookupError: No module has this name; the message lists near ones.
        ValueError: Several have.
        TypeError: As for :func:`runnable`.
    """
    modules, _ = find(runnable(model), [name.removeprefix(f"{COMPILED}.")])
    if len(modules) != 1:
        raise ValueError(f"expected the name of one module: got {name!r}, for {list(modules)}")
    return modules.popitem()[1]
