"""Models in files: written whole or not at all, and read without running anything.

A ``.safetensors`` file written here holds, beside the numbers, what shapes do not tell: the
configuration, the preprocessing, the names of the classes, the licence.
"""

import hashlib
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
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

KEY = "minivit"  # of what stands beside the numbers, in a safetensors file's metadata
MODEL = "model.safetensors"  # in the folder of a training


@dataclass(frozen=True)
class Metadata:
    """What is known of a model beside its numbers; none where it is not known."""

    config: Config | None = None
    preprocess: Preprocess | None = None
    classes: Sequence[str] | None = None
    licence: str | None = None
    removed: Removed = ()


def to_json(about: Metadata) -> dict[str, Any]:
    """What is known of a model, in JSON's types."""
    return {
        "family": about.config and family(about.config),
        "config": about.config and fields_of(about.config),
        "preprocess": about.preprocess and asdict(about.preprocess),
        "classes": about.classes,
        "licence": about.licence,
        "removed": about.removed,
    }


def from_json(fields: Mapping[str, Any]) -> Metadata:
    """The way back from :func:`to_json`, once JSON has been read; ValueError if it is no model."""
    configs: dict[str, Any] = {kind.__name__: config for config, kind in FAMILIES.items()}
    configs |= {"ViT": config_of, "ViTVariant": config_of}
    config, preprocess = fields.get("config"), fields.get("preprocess")
    classes, licence = fields.get("classes"), fields.get("licence")
    texts = isinstance(classes, list | tuple | None) and isinstance(licence, str | None)
    texts = texts and all(isinstance(name, str) for name in classes or ())
    surplus = fields.keys() - {"family", *Metadata.__dataclass_fields__}
    try:
        if surplus or not texts:
            raise TypeError(f"{classes=}, {licence=} and fields {sorted(surplus)}")
        return Metadata(
            # A file that does not say its family holds a ViT.
            None if config is None else configs[fields.get("family", "ViT")](**_tuples(config)),
            None if preprocess is None else Preprocess(**_tuples(preprocess)),
            classes,
            licence,
            tuple((part, blocks) for part, blocks in _tuples(fields.get("removed") or ())),
        )
    except (TypeError, LookupError, AttributeError, ArithmeticError, RuntimeError) as error:
        families = ", ".join(configs)
        raise ValueError(f"expected what describes a model of {families}: got {error}") from error


def _tuples(value: Any) -> Any:
    """The tuples that JSON wrote as lists."""
    if isinstance(value, dict):
        return {key: _tuples(entry) for key, entry in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def fields_of(config: Config) -> dict[str, Any]:
    """A configuration as a dict in which 224 and (224, 224) pixels are the same."""
    return {k: pair(v) if k.endswith("_size") and v else v for k, v in asdict(config).items()}


def save(model: Model, path: str | PathLike[str]) -> None:
    """Writes a model to a ``.safetensors`` file, which :func:`~minivit.loading.load` reads.

    ``preprocess``, ``classes`` and ``licence`` go with it where it has them. A file that is already
    there is replaced when the new one is complete. ValueError if the model no longer fits its
    ``config``, or a number in it is not finite.
    """
    from safetensors.torch import save as safetensors_bytes

    path = Path(path)
    if type(model) not in FAMILIES.values() or not isinstance(model.preprocess, Preprocess | None):
        preprocess = getattr(model, "preprocess", None)
        raise TypeError(f"expected {OURS}: got {type(model).__name__}, preprocess={preprocess!r}")
    if path.suffix != ".safetensors":
        raise ValueError(f"expected a path that ends in .safetensors: got {path}")
    names = None if model.classes is None else [str(name) for name in model.classes]
    with torch.device("meta"):
        expected = build(model.config, model.removed)
    try:
        check_state(model.state_dict(), expected.state_dict())
        check_structure(structure(model), structure(expected))
        if names is not None and len(names) != model.config.classes:
            raise ValueError(f"expected {model.config.classes} names of classes: got {len(names)}")
    except ValueError as error:
        raise ValueError(
            f"the model is not what its config says, and could not be loaded again: {error}. "
            "After another head, for example, set model.config = "
            "dataclasses.replace(model.config, classes=...)"
        ) from error
    about = to_json(Metadata(model.config, model.preprocess, names, model.licence, model.removed))
    state = {key: tensor.contiguous() for key, tensor in model.state_dict().items()}
    text = json.dumps({"sha256": fingerprint(state, about), **about})
    # To memory first: safetensors' own writer calls a full disk no OSError, and lets nobody read.
    content = safetensors_bytes(state, {KEY: text})
    with atomic_write(path) as scratch:
        scratch.write_bytes(content)


def read(path: Path) -> tuple[dict[str, Any], Metadata]:
    """Reads the state dict in a file, and what :func:`save` wrote beside it; nothing is executed.

    The file is ``.safetensors``, or what ``torch.save`` wrote: a state dict, alone or under
    ``"model"`` or ``"state_dict"``. ValueError if it is damaged, or holds more than tensors.
    """
    if not path.is_file():
        got = "a folder" if path.is_dir() else "none"
        raise FileNotFoundError(f"expected a file at {path}: got {got}")
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
    entries = content.items() if isinstance(content, dict) else [(None, None)]
    odd = [key for key, value in entries if not (isinstance(key, str) and _dense(value))]
    if odd:
        got = f"a {type(content).__name__} with {str(odd[0])[:100]}"
        raise ValueError(f"expected a state dict of dense tensors, at {path}: got {got}")
    return content, Metadata()


def _dense(value: Any) -> bool:
    """Whether a tensor has numbers; other values are for :func:`check_state`."""
    return not isinstance(value, Tensor) or (not value.is_meta and value.layout == torch.strided)


def read_pickle(path: Path) -> Any:
    """Reads what ``torch.save`` wrote, if it is whole; nothing in it is executed."""
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


def describe(path: Path) -> Metadata:
    """Reads what :func:`save` wrote beside the numbers of a ``.safetensors`` file, without them."""
    return _read_safetensors(path, numbers=False)[1]


def _read_safetensors(path: Path, numbers: bool = True) -> tuple[dict[str, Tensor], Metadata]:
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        state = {key: file.get_tensor(key) for key in (file.keys() if numbers else ())}
        text = _metadata(file.metadata())
    digest = text.pop("sha256", None)  # none in files from before there was one
    if numbers and digest not in (None, fingerprint(state, text)):
        raise ValueError("its checksum is not that of its content: something in it has changed")
    return state, from_json(text)


def _metadata(metadata: Mapping[str, str] | None) -> dict[str, Any]:
    """What stands beside the numbers; nothing in files from elsewhere."""
    for key, text in (metadata or {}).items():
        if key == KEY or '"sha256"' in text:
            fields = json.loads(text)
            if key != KEY or not isinstance(fields, dict):
                raise ValueError(f"expected fields under {KEY!r} beside the numbers: got {key!r}")
            return fields
    return {}


def fingerprint(state: Mapping[str, Tensor], text: Mapping[str, Any]) -> str:
    """The SHA-256 of what stands beside the numbers, and of each tensor's name, type and bytes."""
    digest = hashlib.sha256(json.dumps(text).encode())
    for key in sorted(state):
        tensor = state[key].cpu()
        digest.update(json.dumps([key, str(tensor.dtype), list(tensor.shape)]).encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Gives a scratch path; what is written there becomes ``path`` at the end, whole or not at all.

    The scratch folder stands beside ``path``, so that the last step is a rename. It goes in any
    case, a full disk and an interrupt included.
    """
    with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        scratch = Path(folder, path.name)
        yield scratch
        scratch.replace(path)
