"""What the modules of another library's ViT say of themselves, and no shape tells."""

import math
from collections.abc import Mapping
from typing import Any

from torch import nn

# By the name of a module's class, our name of a GELU.
GELUS = {
    "GELUActivation": "gelu",
    "GELUTanh": "tanh",
    "NewGELUActivation": "tanh",
    "QuickGELU": "quick",
    "QuickGELUActivation": "quick",
}


def activation_of(module: nn.Module, name: str) -> str:
    """Our name of an activation.

    Raises:
        ValueError: It is no GELU.
    """
    kind = type(module).__name__
    if kind == "GELU":  # torch's has a setting, timm's has none
        return "gelu" if getattr(module, "approximate", "none") == "none" else "tanh"
    if kind not in GELUS:
        raise ValueError(f"expected a GELU in {name}: got {kind}")
    return GELUS[kind]


def the_one(found: Mapping[str, Any], what: str) -> Any:
    """The value that all parts of a model have.

    Raises:
        ValueError: They have several, or there are no such parts.
    """
    values = list(dict.fromkeys(found.values()))
    if len(values) != 1:
        some = {value: next(k for k, v in found.items() if v == value) for value in values}
        said = ", ".join(f"{value} in {name}" for value, name in some.items())
        raise ValueError(f"expected the same {what} in the whole model: got {said or 'none'}")
    return values[0]


def check_scale(name: str, scale: float, width: int) -> None:
    """Refuses attention that divides its scores by another number than the root of d_head."""
    if not math.isclose(scale, width**-0.5):
        raise ValueError(f"expected scores divided by sqrt({width}) in {name}: got {1 / scale:g}")
