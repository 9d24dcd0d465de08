"""Models in files: written whole or not at all, and read without running anything.

A ``.safetensors`` file written here holds, beside the numbers, what shapes do not tell: the
configuration, the preprocessing, the names of the classes, the licence.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from minivit.conversion import check_state
from minivit.families import FAMILIES, build, family
from minivit.model import Config, Model, check_structure, structure
from minivit.patches import pair
from minivit.preprocessing import Preprocess


@dataclass(frozen=True)
class About:
    """What is known of a model beside its numbers; none where it is not known."""

    config: Config | None = None
    preprocess: Preprocess | None = None
    classes: Sequence[str] | None = None
    licence: str | None = None


def save(model: Model, path: str | PathLike[str]) -> None:
    """Writes a model to a ``.safetensors`` file, which :func:`~minivit.loading.load` reads.

    A file that is already there is replaced when the new one is complete.

    Args:
        model: The model; ``preprocess``, ``classes`` and ``licence`` go with it where it has them.
        path: The file, in a folder that exists.

    Raises:
        TypeError: The model is none of minivit's, or its preprocessing no
            :class:`minivit.preprocessing.Preprocess`.
        ValueError: The path does not end in ``.safetensors``, the names are not one a class, the
            model no longer fits its ``config``, or a number in it is not finite.
        OSError: The file cannot be written.
    """
    from safetensors.torch import save as safetensors_bytes

    path = Path(path)
    preprocess = getattr(model, "preprocess", None)
    if type(model) not in FAMILIES.values():
        names = ", ".join(f"minivit.{kind.__name__}" for kind in FAMILIES.values())
        raise TypeError(f"expected a model of minivit's ({names}): got {type(model).__name__}")
    if not isinstance(preprocess, Preprocess | None):
        raise TypeError(f"expected a Preprocess in model.preprocess: got {preprocess!r}")
    if path.suffix != ".safetensors":
        raise ValueError(f"expected a path that ends in .safetensors: got {path}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"expected a folder that exists: got {path.parent}")
    with torch.device("meta"):
        expected = build(model.config)
    try:
        check_state(model.state_dict(), expected.state_dict())
        check_structure(structure(model), structure(expected))
    except ValueError as error:
        raise ValueError(
            f"the model is not what its config says, and could not be loaded again: {error}. "
            "After another head, for example, set model.config = "
            "dataclasses.replace(model.config, classes=...)"
        ) from error
    classes = getattr(model, "classes", None)
    if classes is not None and len(classes) != model.config.classes:
        raise ValueError(
            f"expected a name for each of {model.config.classes} classes in model.classes: "
            f"got {len(classes)}"
        )
    about = {
        "family": family(model.config),
        "config": fields_of(model.config),
        "preprocess": preprocess and asdict(preprocess),
        "classes": None if classes is None else [str(name) for name in classes],
        "licence": getattr(model, "licence", None),
    }
    state = {key: tensor.contiguous() for key, tensor in model.state_dict().items()}
    # To memory first: safetensors' own writer calls a full disk no OSError, and lets nobody read.
    content = safetensors_bytes(state, {"minivit": json.dumps(about)})
    with replacing(path) as scratch:
        scratch.write_bytes(content)


def read(path: Path) -> tuple[dict[str, Any], About]:
    """Reads a file of tensors; nothing in it is executed.

    Args:
        path: A ``.safetensors`` file, or what ``torch.save`` wrote: a state dict, alone or under
            ``"model"`` or ``"state_dict"``.

    Returns:
        The state dict, unchecked but for its keys being strings; and what :func:`save` wrote
        beside it.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is truncated, or is no checkpoint, or holds more than tensors.
    """
    if not path.is_file():
        what = "it is a folder" if path.is_dir() else "there is none"
        raise FileNotFoundError(f"expected a file at {path}: {what}")
    try:
        if path.suffix == ".safetensors":
            return _read_safetensors(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # broken files fail in many ways, in zip, pickle, torch or Rust
        raise ValueError(
            f"expected a whole checkpoint, of tensors alone, at {path}; reading it failed: "
            f"{type(error).__name__}: {str(error).partition('. ')[0]}"
        ) from error
    for key in ("model", "state_dict"):
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            content = content[key]
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise ValueError(
            f"expected a state dict, from names to tensors, at {path}: got a "
            f"{type(content).__name__}"
        )
    return content, About()


def _read_safetensors(path: Path) -> tuple[dict[str, Tensor], About]:
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        state = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    return state, describe(path)


def describe(path: Path) -> About:
    """Reads what :func:`save` wrote beside the numbers of a ``.safetensors`` file, and no number.

    Raises:
        ValueError: It names a family or a field that does not exist.
    """
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        metadata = json.loads((file.metadata() or {}).get("minivit", "{}"))
    configs = {kind.__name__: config for config, kind in FAMILIES.items()}
    name = metadata.pop("family", "ViT")  # the only family in files that do not say
    if name not in configs:
        raise ValueError(f"there is no family {name!r}: expected {' or '.join(configs)}")
    kinds: dict[str, Callable[..., Any]] = {"config": configs[name], "preprocess": Preprocess}
    for part, kind in kinds.items():
        if metadata.get(part) is not None:
            pairs = metadata[part].items()  # JSON has no tuples
            metadata[part] = kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in pairs})
    return About(**metadata)


def fields_of(config: Config) -> dict[str, Any]:
    """A configuration as a dict in which 224 and (224, 224) pixels are the same."""
    return {k: pair(v) if k.endswith("_size") and v else v for k, v in asdict(config).items()}


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Gives a scratch path; what is written there becomes ``path`` at the end, whole or not at all.

    The scratch folder stands beside ``path``, so that the last step is a rename. It goes in any
    case, a full disk and an interrupt included.
    """
    with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        scratch = Path(folder, path.name)
        yield scratch
        scratch.replace(path)
