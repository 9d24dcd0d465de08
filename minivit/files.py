"""Models in files: written whole or not at all, and read without running anything.

A ``.safetensors`` file written here holds, beside the numbers, what shapes do not tell: the
configuration, the preprocessing, the names of the classes, the licence.
"""

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from minivit.families import FAMILIES, OURS, build, family
from minivit.model import Config, Model, Removed, check_state, check_structure, structure
from minivit.patches import pair
from minivit.preprocessing import Preprocess
from minivit.variants import config_of


def current(said: dict[str, Any]) -> dict[str, Any]:
    """What a file says beside its numbers, with such fields of a ViT or a Mixer as ``removed``."""
    config = said.get("config")
    if said.get("family", "ViT") not in ("ViT", "Mixer") or not isinstance(config, dict):
        return said
    config = dict(config)
    removed = []
    residual = config.pop("residual", True)
    # A norm that nothing read was left out with its branch.
    unread = residual is not False and config.get("norm") != "post"
    for part, norm in ("attention", "norm1"), ("mlp", "norm2"):
        if config.pop(part, True) is False:
            removed += [[part, None], [norm, None]] if unread else [[part, None]]
    if config.get("norm") == "none" or "mixing_hidden" in config:
        removed += [["norm", None]] if config.pop("norm", "pre") == "none" else []
    if residual is False:
        removed.append(["residual", None])
    if config.get("positions") == "none" and "mixing_hidden" not in config:
        del config["positions"]
        removed.append(["positions", None])
    return {"removed": removed, **said, "config": config}


@dataclass(frozen=True)
class About:
    """What is known of a model beside its numbers; none where it is not known.

    Raises:
        ValueError: The names of the classes are no list of text, or the licence is no text.
    """

    config: Config | None = None
    preprocess: Preprocess | None = None
    classes: Sequence[str] | None = None
    licence: str | None = None
    removed: Removed = ()

    def __post_init__(self) -> None:
        if not isinstance(self.classes, list | tuple | None):
            raise ValueError(f"expected a list of names as classes: got {self.classes!r}")
        if odd := [name for name in self.classes or () if not isinstance(name, str)]:
            raise ValueError(f"expected names as classes: got {odd[0]!r} among them")
        if not isinstance(self.licence, str | None):
            raise ValueError(f"expected text as licence: got {self.licence!r}")
        if not all(isinstance(step, tuple) and len(step) == 2 for step in self.removed):
            raise ValueError(
                f"expected pairs of a part and blocks as removed: got {self.removed!r}"
            )


def said(about: About) -> dict[str, Any]:
    """What is known of a model, in JSON's types."""
    return {
        "family": about.config and family(about.config),
        "config": about.config and fields_of(about.config),
        "preprocess": about.preprocess and asdict(about.preprocess),
        "classes": about.classes,
        "licence": about.licence,
        "removed": about.removed,
    }


def understood(fields: dict[str, Any]) -> About:
    """The way back from :func:`said`, once JSON has been read.

    Raises:
        ValueError: It names a family or a field that does not exist, or a value does not fit.
    """
    parts = {"family", *About.__dataclass_fields__}
    if odd := ", ".join(sorted(fields.keys() - parts)):
        raise ValueError(f"expected {', '.join(sorted(parts))} beside the numbers: got {odd}")
    fields = current(fields)
    configs = {kind.__name__: config for config, kind in FAMILIES.items()}
    name = fields.get("family", "ViT")  # the only family in files that do not say
    if name not in list(configs):
        raise ValueError(f"there is no family {name!r}: expected {' or '.join(configs)}")
    return About(
        _made(config_of if "ViT" in name else configs[name], fields.get("config")),
        _made(Preprocess, fields.get("preprocess")),
        fields.get("classes"),
        fields.get("licence"),
        _tuples(fields.get("removed") or ()),
    )


def _made(kind: Callable[..., Any], fields: Any) -> Any:
    """A dataclass of its fields as JSON has them, or none of none."""
    if fields is None:
        return None
    try:
        return kind(**{k: _tuples(v) for k, v in fields.items()})
    except (TypeError, AttributeError, ArithmeticError, RuntimeError) as error:
        name = "ViTConfig" if kind is config_of else kind.__name__
        raise ValueError(f"expected the fields of a {name}: {error}") from error


def _tuples(value: Any) -> Any:
    """The tuples that JSON wrote as lists."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def fields_of(config: Config) -> dict[str, Any]:
    """A configuration as a dict in which 224 and (224, 224) pixels are the same."""
    return {k: pair(v) if k.endswith("_size") and v else v for k, v in asdict(config).items()}


KEY = "minivit"  # of what is said beside the numbers, in a safetensors file's metadata
MODEL = "model.safetensors"  # in the folder of a training


def save(model: Model, path: str | PathLike[str]) -> None:
    """Writes a model to a ``.safetensors`` file, which :func:`~minivit.loading.load` reads.

    A file that is already there is replaced when the new one is complete.

    Args:
        model: The model; ``preprocess``, ``classes`` and ``licence`` go with it where it has them.
        path: The file, in a folder that exists.

    Raises:
        TypeError: The model is none of minivit's, or its preprocessing is no
            :class:`minivit.preprocessing.Preprocess`.
        ValueError: The path does not end in ``.safetensors``, the names are not one a class, the
            model no longer fits its ``config``, or a number in it is not finite.
        OSError: The file cannot be written.
    """
    from safetensors.torch import save as safetensors_bytes

    path = Path(path)
    preprocess = getattr(model, "preprocess", None)
    if type(model) not in FAMILIES.values():
        raise TypeError(f"expected {OURS}: got {type(model).__name__}")
    if not isinstance(preprocess, Preprocess | None):
        raise TypeError(f"expected a Preprocess in model.preprocess: got {preprocess!r}")
    if path.suffix != ".safetensors":
        raise ValueError(f"expected a path that ends in .safetensors: got {path}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"expected a folder that exists: got {path.parent}")
    with torch.device("meta"):
        expected = build(model.config, model.removed)
    try:
        check_state(model.state_dict(), expected.state_dict())
        check_structure(structure(model), structure(expected))
    except ValueError as error:
        raise ValueError(
            f"the model is not what its config says, and could not be loaded again: {error}. "
            "After another head, for example, set model.config = "
            "dataclasses.replace(model.config, classes=...)"
        ) from error
    classes = model.classes
    if classes is not None and len(classes) != model.config.classes:
        raise ValueError(
            f"expected a name for each of {model.config.classes} classes in model.classes: "
            f"got {len(classes)}"
        )
    names = None if classes is None else [str(name) for name in classes]
    about = said(About(model.config, preprocess, names, model.licence, model.removed))
    state = {key: tensor.contiguous() for key, tensor in model.state_dict().items()}
    text = json.dumps({"sha256": fingerprint(state, about), **about})
    # To memory first: safetensors' own writer calls a full disk no OSError, and lets nobody read.
    content = safetensors_bytes(state, {KEY: text})
    with replacing(path) as scratch:
        scratch.write_bytes(content)


def read(path: Path) -> tuple[dict[str, Any], About]:
    """Reads a file of tensors; nothing in it is executed.

    Args:
        path: A ``.safetensors`` file, or what ``torch.save`` wrote: a state dict, alone or under
            ``"model"`` or ``"state_dict"``.

    Returns:
        The state dict, unchecked but for its keys being strings and its tensors having numbers; and
        what :func:`save` wrote beside it.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is truncated or damaged, or is no checkpoint, or holds more than
            tensors.
    """
    if not path.is_file():
        what = "it is a folder" if path.is_dir() else "there is none"
        raise FileNotFoundError(f"expected a file at {path}: {what}")
    try:
        if path.suffix == ".safetensors":
            return _read_safetensors(path)
        content = read_pickle(path)
    except Exception as error:  # broken files fail in many ways, in zip, pickle, torch or Rust
        raise ValueError(
            f"expected a whole checkpoint, of tensors alone, at {path}; reading it failed: "
            f"{reason(error)}"
        ) from error
    for key in ("model", "state_dict"):
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            content = content[key]
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise ValueError(
            f"expected a state dict, from names to tensors, at {path}: got a "
            f"{type(content).__name__}"
        )
    for key, value in content.items():
        if isinstance(value, Tensor) and (value.is_meta or value.layout != torch.strided):
            kind = "one without numbers" if value.is_meta else f"one of layout {value.layout}"
            raise ValueError(f"expected dense tensors at {path}: {key} is {kind}")
    return content, About()


def read_pickle(path: Path) -> Any:
    """Reads what ``torch.save`` wrote, if it is whole; nothing in it is executed.

    Raises:
        Exception: Of many kinds, for a broken file or one that holds code.
    """
    if zipfile.is_zipfile(path):  # torch does not look at the checksums that it writes
        with zipfile.ZipFile(path) as file:
            kept = any(record.CRC for record in file.infolist())  # torch can leave them out
            if kept and (damaged := file.testzip()):
                raise ValueError(f"the checksum of {damaged} in it is not that of its content")
    return torch.load(path, map_location="cpu", weights_only=True)


def reason(error: Exception) -> str:
    """The sentence in which an error says why: torch's begins with advice on how to run code."""
    why = str(error).rpartition("WeightsUnpickler error: ")[2]
    return f"{type(error).__name__}: {why.partition('. ')[0].splitlines()[0] if why else ''}"


def _read_safetensors(path: Path) -> tuple[dict[str, Tensor], About]:
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        state = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        text = _beside(file.metadata())
    digest = text.pop("sha256", None)  # none in files from before there was one
    if digest is not None and digest != fingerprint(state, text):
        raise ValueError("its checksum is not that of its content: something in it has changed")
    return state, understood(text)


def describe(path: Path) -> About:
    """Reads what :func:`save` wrote beside the numbers of a ``.safetensors`` file, and no number.

    Raises:
        ValueError: It names a family or a field that does not exist, or a value does not fit.
    """
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        text = _beside(file.metadata())
    return understood({key: value for key, value in text.items() if key != "sha256"})


def _beside(metadata: Mapping[str, str] | None) -> dict[str, Any]:
    """What stands beside the numbers; nothing in files from elsewhere."""
    for key, text in (metadata or {}).items():
        if key == KEY or '"sha256"' in text:
            found = json.loads(text)
            if key != KEY or not isinstance(found, dict):
                raise ValueError(f"expected fields under {KEY!r} beside the numbers: got {key!r}")
            return found
    return {}


def fingerprint(state: Mapping[str, Tensor], text: Mapping[str, Any]) -> str:
    """The SHA-256 of what stands beside the numbers, and of each tensor's name, type and bytes."""
    found = hashlib.sha256(json.dumps(text).encode())
    for key in sorted(state):
        tensor = state[key].cpu()
        found.update(json.dumps([key, str(tensor.dtype), list(tensor.shape)]).encode())
        found.update(tensor.flatten().view(torch.uint8).numpy().data)
    return found.hexdigest()


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
