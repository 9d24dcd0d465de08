"""Whether the numbers of one model fit another."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

SOURCES = "torchvision's VisionTransformer or ResNet, or the state dict of one"


def check_state(state: Mapping[str, Any], expected: Mapping[str, Tensor]) -> None:
    """Refuses a state dict that is not exactly what is expected.

    Args:
        state: What was given.
        expected: What a fitting model has under each key; only shapes and kinds of numbers count.

    Raises:
        ValueError: Keys missing, surplus, of another shape or kind, or numbers that are not finite:
            one error that counts them all and names the first three of each sort.
    """
    found: dict[str, list[str]] = {
        "missing": [key for key in expected if key not in state],
        "surplus": [key for key in state if key not in expected],
    }
    shapes, kinds, broken = [], [], []
    for key in expected.keys() & state.keys():
        given, wanted = state[key], expected[key]
        if not isinstance(given, Tensor):
            kinds.append(f"{key} (a {type(given).__name__})")
        elif given.shape != wanted.shape:
            shapes.append(f"{key} ({list(given.shape)}, expected {list(wanted.shape)})")
        elif given.is_floating_point() != wanted.is_floating_point():
            kinds.append(f"{key} ({given.dtype})")
        elif not given.is_meta and not given.isfinite().all():
            broken.append(key)
    found |= {"of another shape": shapes, "of another kind": kinds, "with NaN or infinity": broken}
    problems = [
        f"{len(keys)} {sort}: {', '.join(sorted(keys)[:3])}{', ...' if len(keys) > 3 else ''}"
        for sort, keys in found.items()
        if keys
    ]
    if problems:
        raise ValueError(f"these weights do not fit the model: {'; '.join(problems)}")
