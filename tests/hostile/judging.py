"""Whether an answer to a bad argument is right, and whether a refusal is clear."""

import ast
import dataclasses
import linecache
import math
import re
import traceback
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from beartype import BeartypeConf
from beartype.door import is_bearable
from PIL import UnidentifiedImageError
from torch import Tensor, nn

import minivit
from tests.hostile.values import Mine

HERE = Path(minivit.__file__).parents[1]
OURS = tuple(str(HERE / package) for package in ("minivit", "vitlab"))
GIVEN = str(Path(__file__).parent)
TOWER = BeartypeConf(is_pep484_tower=True)  # an int is a float
Verdict = tuple[str, str, str]  # the class, the kind, and what was said, or given


def refusal(error: BaseException) -> Verdict:
    """``clear`` if raised here on purpose, in words of ours; otherwise what is unclear."""
    text = f"{type(error).__name__}: {error}"
    frames = [(f.filename, f.lineno) for f in traceback.extract_tb(error.__traceback__)]
    ours = [frame for frame in frames if frame[0].startswith(OURS)]
    after = frames[frames.index(ours[-1]) + 1 :] if ours else []
    theirs = any(frame[0].startswith(GIVEN) for frame in after)
    if isinstance(error, Mine) or isinstance(error.__cause__, Mine) or theirs:
        return "clear", "the given function's own error", text
    if isinstance(error, UnidentifiedImageError) or getattr(error, "filename", None) is not None:
        return "clear", "an error that names a file", text
    meant = ours and frames[-1] == ours[-1] and ours[-1][1] in _raising(ours[-1][0])
    clear = meant and len(str(error)) > 15
    place = Path(ours[-1][0]).name if ours else "outside"
    kind = re.sub(r"'[^']*'|\d[\d.e+-]*|\[[^]]*\]", "_", text)[:60]
    return "clear" if clear else "unclear", kind, f"{place}: {text}"


@cache
def _raising(file: str) -> frozenset[int]:
    """The lines of a file that belong to a ``raise``."""
    tree = ast.parse("".join(linecache.getlines(file)))
    raises = (node for node in ast.walk(tree) if isinstance(node, ast.Raise))
    return frozenset(n for r in raises for n in range(r.lineno, (r.end_lineno or r.lineno) + 1))


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The tensors and numbers in a result, with where they are."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = vars(value)
    elif isinstance(value, nn.Module):
        value = value.state_dict()
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from leaves(part, f"{path}.{key}")
    elif isinstance(value, tuple | list):
        for i, part in enumerate(value):
            yield from leaves(part, f"{path}[{i}]")
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield path, torch.from_numpy(value.copy())
    elif isinstance(value, Tensor):
        whole = value.ndim == 0 and not value.is_meta and not value.is_complex()
        yield path, value.item() if whole else value.detach()
    elif isinstance(value, int | float | str | bool | np.generic | None):
        yield path, value


def finite(value: Any) -> bool:
    def whole(part: Any) -> bool:
        if isinstance(part, Tensor) and not part.is_meta:
            return bool(part.to_dense().isfinite().all())
        return not isinstance(part, float) or math.isfinite(part)

    return all(whole(part) for _, part in leaves(value))


def same(a: Any, b: Any) -> bool:
    """Whether two results are equal but for rounding."""
    left, right = ({key: part for key, part in leaves(x) if "second" not in key} for x in (a, b))

    def alike(x: Any, y: Any) -> bool:
        if isinstance(x, Tensor) and isinstance(y, Tensor):
            return x.shape == y.shape and torch.allclose(
                x.to(torch.complex128), y.to(torch.complex128), 1e-2, 1e-2, equal_nan=True
            )
        if isinstance(x, float) and isinstance(y, float | int):
            return math.isclose(x, y, rel_tol=1e-2, abs_tol=1e-2) or x != x and y != y
        return isinstance(x, Tensor) == isinstance(y, Tensor) and bool(x == y)

    return left.keys() == right.keys() and all(alike(left[key], right[key]) for key in left)


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a documented type; arrays by their axes and dtype."""
    return is_bearable(value, kind, conf=TOWER)
