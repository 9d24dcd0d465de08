"""From shell-style names to the modules of a model."""

from collections.abc import Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase

import torch
from torch import nn

COMPILED = "_orig_mod"  # where torch.compile keeps the original module
# Modules that are never called themselves.
CONTAINERS = (nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.ParameterDict)


def weights_of(name: str) -> str:
    """The name under which the attention weights of the module ``name`` are recorded."""
    return f"{name}.weights" if name else "weights"


def runnable(model: nn.Module) -> dict[str, nn.Module]:
    """Every module that can be called, by each of its names; ``""`` is the model itself.

    A compiled model has the names of the original. A model with parts that run where their hooks
    are not called raises TypeError.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"expected an nn.Module: got {type(model).__name__}")
    model = getattr(model, COMPILED, model)
    modules = dict(model.named_modules(remove_duplicate=False))
    for name, module in modules.items():
        if isinstance(module, nn.DataParallel | torch.jit.ScriptModule):
            raise TypeError(
                f"cannot look inside {type(module).__name__} (module {name!r}): it runs copies of "
                "its parts, or runs them outside Python; take the module it was made from"
            )
    return {name: m for name, m in modules.items() if not isinstance(m, CONTAINERS)}


def attention_names(modules: dict[str, nn.Module]) -> list[str]:
    """Attention weights to suggest: those of modules with "att" in their name or class."""
    return [
        weights_of(name)
        for name, module in modules.items()
        if "att" in f"{name.rpartition('.')[2]} {type(module).__name__}".lower()
    ]


def find(
    modules: dict[str, nn.Module], patterns: Iterable[str]
) -> tuple[dict[str, nn.Module], dict[str, nn.Module]]:
    """Finds the modules whose outputs, and those whose attention weights, match patterns.

    Patterns are shell-style; ``*`` matches anything, dots included. One that ends in ``.weights``
    means attention weights, unless a module has that name. If a pattern matches nothing,
    LookupError lists similar names.
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
    """The module of this name: LookupError if there is none, ValueError if there are several."""
    modules, _ = find(runnable(model), [name.removeprefix(f"{COMPILED}.")])
    if len(modules) != 1:
        raise ValueError(f"expected the name of one module: got {name!r}, for {list(modules)}")
    return modules.popitem()[1]
