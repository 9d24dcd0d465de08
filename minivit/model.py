"""What the models of every family have in common, and how two of them are compared."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature
from types import UnionType
from typing import Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import torch
from torch import Tensor, nn

from minivit.patches import grid_of
from minivit.shapes import Fraction, Grid, Size

Removed = tuple[tuple[str, tuple[int, ...] | None], ...]  # parts, and their blocks: none for all


class Config:
    """What every family's configuration says. Each is a frozen dataclass, with more fields."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    image_size: Size  # of the images that it is made for
    channels: int
    classes: int  # number of logits

    def __post_init__(self) -> None:
        """Refuses a field that is not of its type, or a size that is not positive."""
        hints = get_type_hints(type(self), include_extras=True)
        for name, value in vars(self).items():
            words, test = expected(hints[name], KINDS.__getitem__)
            if not test(value):
                raise ValueError(f"expected {words} as {name}: got {value!r}")


class PatchConfig(Config):
    """What the configurations of a ViT and of a Mixer make of their sizes."""

    patch_size: Size
    dim: int
    mlp_ratio: float

    def __post_init__(self) -> None:
        super().__post_init__()
        grid_of(self.image_size, self.patch_size)  # refuses patches that do not divide an image
        check_rule(self, self.dim % getattr(self, "heads", 1) == 0, "heads must divide dim")
        check_rule(self, self.hidden >= 1, "mlp_ratio must leave the MLP a width")

    @property
    def grid(self) -> Grid:
        """Rows and columns of patches."""
        return grid_of(self.image_size, self.patch_size)

    @property
    def hidden(self) -> int:
        """Width of the hidden layer of the MLP on each token."""
        return round(self.dim * self.mlp_ratio)


class Model(nn.Module):
    """A classifier of images: ``[batch, channels, height, width]`` to ``[batch, classes]``.

    ``minivit.load`` sets ``preprocess``, from images to a batch, ``classes``, the names of the
    logits, and ``licence``, the terms of the weights. ``removed`` is what ``minivit.remove`` took.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> "Model":
        given = [*args[:1], *kwargs.values()]  # none, where it is copied
        if not all(isinstance(config, Config) for config in given):
            raise TypeError(f"expected the config of a {cls.__name__}: got {given[0]!r}")
        return super().__new__(cls)

    config: Config
    head: nn.Module  # the last linear map, [batch, dim] -> [batch, classes]
    preprocess: Callable[[Any], Tensor] = None  # type: ignore[assignment]
    classes: Sequence[str] = None  # type: ignore[assignment]
    licence: str | None = None
    removed: Removed = ()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


Kind = tuple[str, Callable[[Any], bool]]  # in words, and as a test
KINDS: dict[Any, Kind] = {
    int: ("a positive integer", lambda value: type(value) is int and value > 0),
    float: ("a positive number", lambda value: _is_number(value) and 0 < value < math.inf),
    Fraction: ("a number from 0, below 1", lambda value: _is_number(value) and 0 <= value < 1),
    bool: ("True or False", lambda value: type(value) is bool),
    str: ("a string", lambda value: type(value) is str),
    type(None): ("None", lambda value: value is None),
}


def expected(hint: Any, kind: Callable[[Any], Kind]) -> Kind:
    """What values of this type are, and a test of them; ``kind`` knows the types it is made of."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        known = " or ".join(map(repr, arguments))
        return known, lambda value: isinstance(value, str) and value in arguments
    if origin not in (UnionType, Union, tuple):
        return kind(hint)
    words, tests = zip(*(expected(a, kind) for a in arguments if a is not ...), strict=True)
    if origin is not tuple:
        return " or ".join(words), lambda value: any(test(value) for test in tests)

    def fits(value: Any) -> bool:  # tuple[int, int], tuple[str, ...]
        row = value if isinstance(value, tuple) else ()
        each = tests * len(row) if ... in arguments else tests
        return 0 < len(row) == len(each) and all(map(lambda test, x: test(x), each, row))

    said = f"each {words[0]}" if len(set(words)) == 1 else ", ".join(words)
    return f"a tuple whose{'' if ... in arguments else f' {len(words)}'} entries are {said}", fits


def checked_sizes(init: Callable[..., None]) -> Callable[..., None]:
    """The same constructor of an attention; TypeError where a size or a dropout is none."""
    kinds = {"dim": int, "heads": int, "dropout": Fraction, "attention_dropout": Fraction}

    @wraps(init)
    def checked(*args: Any, **kwargs: Any) -> None:
        for name, value in signature(init).bind(*args, **kwargs).arguments.items():
            if name in kinds and not KINDS[kinds[name]][1](value):
                raise TypeError(f"expected {KINDS[kinds[name]][0]} as {name}: got {value!r}")
        init(*args, **kwargs)

    return checked


def check_rule(config: Any, holds: bool, rule: str) -> None:
    """Refuses a configuration for which a rule, a sentence about its fields, does not hold."""
    if not holds:
        named = [f"{k}={v!r}" for k, v in vars(config).items() if re.search(rf"\b{k}\b", rule)]
        raise ValueError(f"{rule}: got {', '.join(named)}")


def check_images(images: Tensor, model: Any) -> None:
    """Refuses images of another rank, channels, size, dtype or device than the model's."""
    config = model.config
    weight = next(model.parameters())
    if not isinstance(images, Tensor):
        raise TypeError(f"expected a tensor of images: got {type(images).__name__}")
    if images.ndim != 4 or images.shape[1] != config.channels:
        expected = f"images [batch, {config.channels}, height, width]"
        raise ValueError(f"expected {expected}: got {list(images.shape)}")
    # Autocast makes the two alike; integers and float64 it leaves as they are.
    alike = images.dtype == weight.dtype or (
        images.dtype in (torch.float32, torch.bfloat16, torch.float16)
        and torch.is_autocast_enabled(weight.device.type)
    )
    if images.device != weight.device or not alike:
        expected = f"images of {weight.dtype} on {weight.device}, as the weights"
        raise ValueError(f"expected {expected}: got {images.dtype} on {images.device}")


def check_mask(mask: Tensor | None) -> None:
    """Refuses a mask that is not boolean: torch's kernel would add it to the scores."""
    if mask is not None and mask.dtype != torch.bool:
        raise ValueError(f"expected a boolean mask, true where queries attend: got {mask.dtype}")


def check_attention(q: Tensor, k: Tensor, mask: Tensor | None, v: Tensor | None = None) -> None:
    """Refuses queries, keys, values and masks that do not fit each other."""
    v = k if v is None else v
    tensors = (t if isinstance(t, Tensor) else None for t in (q, k, v))
    kinds = [f"{t.dtype} on {t.device}" if t is not None else "no tensor" for t in tensors]
    if any(not isinstance(t, Tensor) or t.ndim < 2 for t in (q, k, v)) or len({*kinds}) > 1:
        what = "queries, keys and values, tensors of one dtype and device"
        raise TypeError(f"expected {what}: got {kinds}")
    if not isinstance(mask, Tensor | None):
        raise TypeError(f"expected a boolean mask, a tensor: got {type(mask).__name__}")
    queries, keys = q.shape[-2], k.shape[-2]
    if q.shape[-1] != k.shape[-1] or v.shape[-2] != keys:
        expected = "queries [..., queries, d], keys [..., keys, d] and values [..., keys, d_value]"
        raise ValueError(f"expected {expected}: got {[list(t.shape) for t in (q, k, v)]}")
    check_mask(mask)
    sides = [] if mask is None else zip(mask.shape[::-1], (keys, queries), strict=False)
    if mask is not None and any(n not in (1, m) for n, m in sides):
        expected = f"a boolean mask [..., {queries}, {keys}], true where queries attend"
        raise ValueError(f"expected {expected}: got {mask.dtype} {list(mask.shape)}")


def check_state(state: Mapping[str, Any], expected: Mapping[str, Tensor]) -> None:
    """Refuses a state dict without the keys, shapes and kinds of numbers of another, or with NaN.

    One ValueError counts all such keys, and names the first three of each sort.
    """
    problems: dict[str, list[str]] = {
        "missing": [key for key in expected if key not in state],
        "surplus": [key for key in state if key not in expected],
        "of another shape": [],
        "of another kind": [],
        "with NaN or infinity": [],
    }
    for key in expected.keys() & state.keys():
        given, wanted = state[key], expected[key]
        if not isinstance(given, Tensor):
            problems["of another kind"].append(f"{key} (a {type(given).__name__})")
        elif given.shape != wanted.shape:
            shapes = f"{list(given.shape)}, expected {list(wanted.shape)}"
            problems["of another shape"].append(f"{key} ({shapes})")
        elif given.is_floating_point() != wanted.is_floating_point():
            problems["of another kind"].append(f"{key} ({given.dtype})")
        elif not given.is_meta and not given.isfinite().all():
            problems["with NaN or infinity"].append(key)
    sentences = [
        f"{len(keys)} {sort}: {', '.join(sorted(keys)[:3])}{', ...' if len(keys) > 3 else ''}"
        for sort, keys in problems.items()
        if keys
    ]
    if sentences:
        raise ValueError(f"these weights do not fit the model: {'; '.join(sentences)}")


# Settings that matter in training alone.
TRAINING = {"training", "dropout", "attention_dropout", "p"}


def structure(model: nn.Module) -> dict[str, Any]:
    """By name, the kind of every module (``"blocks.0.norm1"``: ``"LayerNorm"``) and its settings.

    Such as ``"blocks.0.norm1.eps"``: ``1e-6``; not those that matter in training alone.
    """
    settings: dict[str, Any] = {}
    for name, module in model.named_modules():
        if name:  # the model's own settings stand in its configuration
            settings[name] = type(module).__name__
            for field, value in vars(module).items():
                plain = isinstance(value, bool | int | float | str | tuple)
                if plain and not field.startswith("_") and field not in TRAINING:
                    settings[f"{name}.{field}"] = value
    return settings


def check_structure(given: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Refuses a :func:`structure` that is not the expected one, naming up to three differences."""
    keys = [key for key in {**expected, **given} if given.get(key) != expected.get(key)]
    if keys:
        first = [f"{k} is {given.get(k)} (expected: {expected.get(k)})" for k in keys[:3]]
        raise ValueError(", ".join(first) + (", ..." if keys[3:] else ""))
