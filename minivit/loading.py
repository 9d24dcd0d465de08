"""Models with trained weights: those that come with the package, torchvision's, or a file's."""

import hashlib
import re
import warnings
from dataclasses import replace
from http.client import HTTPException
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import torch

from minivit import torchvision_resnet as resnet
from minivit.catalogue import MODELS, V1, changed, described, shipped
from minivit.families import build, family
from minivit.files import MODEL, About, fields_of, read, replacing
from minivit.model import Config, Model, Removed, check_state
from minivit.patches import pair
from minivit.positions import resample
from minivit.preprocessing import Preprocess
from minivit.shapes import Size
from minivit.torchvision import from_torchvision, is_torchvisions
from minivit.variants import PLAIN
from minivit.vit import ViTConfig


def fetch(url: str) -> Path:
    """Gives the file at a URL: from torch.hub's cache, or downloaded with a progress bar.

    Both are checked against the hash that torchvision writes into a file's name (the first eight
    hexadecimal digits of its SHA-256). A cached file that differs is fetched again, with a warning,
    and stays until the new one is complete.

    Args:
        url: Such as ``https://download.pytorch.org/models/vit_b_32-d86f8d99.pth``.

    Returns:
        The file's path in ``torch.hub.get_dir() / "checkpoints"`` (``TORCH_HOME`` moves it).

    Raises:
        OSError: No network, a transfer that breaks off, another hash, no room, no right to write.
    """
    name = Path(urlparse(url).path).name
    digits = re.findall(r"-([0-9a-f]{8,})\.", name)[-1]
    cached = Path(torch.hub.get_dir(), "checkpoints", name)
    try:
        if cached.exists():
            if _sha256(cached).startswith(digits):
                return cached
            warnings.warn(
                f"{cached} is broken: its SHA-256 does not begin with {digits}. Fetching it again.",
                stacklevel=3,  # where load was called
            )
        cached.parent.mkdir(parents=True, exist_ok=True)
        with replacing(cached) as scratch:  # torch.hub leaves its own scratch file on a full disk
            torch.hub.download_url_to_file(url, str(scratch), digits)
    except (OSError, HTTPException, RuntimeError) as error:  # torch.hub says RuntimeError of a hash
        raise OSError(
            f"could not fetch {url}: {error}. The file can also be put there by hand: {cached}"
        ) from error
    return cached


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def resized(model: Model, image_size: Size) -> Model:
    """Gives a copy of a model that is made for images of another size; its patches stay.

    Positions are resampled, as :func:`~minivit.positions.resample` does, so the copy
    answers as the model does to images of that size. ``preprocess`` covers the size with the whole
    of an image's shorter side.

    Raises:
        ValueError: Patches do not divide that size, or the weights are for one number of tokens,
            as a Mixer's are.
    """
    size = pair(image_size)
    if size == pair(model.config.image_size):
        return model
    config: Any = replace(model.config, image_size=size)
    with torch.device("meta"):
        other = build(config, model.removed)
    state = model.state_dict()
    there: Any = model
    if "positions.table" in state:
        new: Any = other
        table = state["positions.table"]
        state["positions.table"] = resample(table, there.positions.grid, new.positions.grid)
    fixed = [key for key, value in other.state_dict().items() if value.shape != state[key].shape]
    if fixed:
        height, width = pair(model.config.image_size)
        raise ValueError(
            f"the weights of a {family(config)} are for one number of tokens, so it takes images "
            f"of {height} x {width} pixels alone: got image_size={image_size!r}"
        )
    first = next(model.parameters())
    other.to_empty(device=first.device).to(first.dtype).load_state_dict(state)
    other.classes, other.licence = model.classes, model.licence
    if isinstance(model.preprocess, Preprocess):
        other.preprocess = replace(model.preprocess, size=size, resize=size)
    return other.train(model.training)


# Fields of a configuration that matter in training alone: a file may have been trained with others.
TRAINING = {"dropout", "attention_dropout", "stochastic_depth"}


def load(
    name: str | PathLike[str], weights: str | PathLike[str] | None = None, **changes: Any
) -> Model:
    """Makes a model with trained weights: on the CPU, in float32 and evaluation mode.

    Its ``preprocess`` makes a batch of images: torchvision's for its weights, the file's own, or
    else a resize and crop to the model's size and ImageNet's mean and standard deviation; none for
    other than three channels. Its ``classes`` are the names of the logits, their numbers where the
    file has no names; ``licence`` is none where none is stated.

    Args:
        name: One of :func:`~minivit.catalogue.models`. Or the path of a file from
            :func:`~minivit.files.save`, or of the folder of a training: these say what model
            they hold.
        weights: One of torchvision's names, such as ``"IMAGENET1K_V1"``: fetched once, checked, and
            kept in torch.hub's cache. Or the path of a file: ``.safetensors``, or a state dict
            written by ``torch.save``, with minivit's names or torchvision's; nothing in it is
            executed. Default: those that come with the package, else ``"IMAGENET1K_V1"``.
        **changes: Sizes that the weights are for, such as ``classes=10``, as for
            :func:`~minivit.catalogue.create`, or what counts in training, such as ``dropout=0.1``.
            An ``image_size`` other than that of the weights gives
            :func:`~minivit.loading.resized`; of a file that does not say its size, it is that.

    Raises:
        ValueError: An unknown name, weights beside a file that holds some, a file that is damaged
            or no checkpoint, or weights for another model: keys missing, surplus or of another
            shape, numbers that are not finite, another configuration.
        FileNotFoundError: There is no such file.
        OSError: The weights could not be fetched.
    """
    name, known = str(name), None
    files = shipped()
    if weights is None and name in files:
        name = str(files[name])
    own = name.endswith(".safetensors") or (name not in [*MODELS, *files] and Path(name).exists())
    if own and weights is not None:
        raise ValueError(f"{name} holds weights itself: got weights={str(weights)!r}, too")
    if own:
        path = Path(name, MODEL) if Path(name).is_dir() else Path(name)
        state, about = read(path)
        if about.config is None:
            raise ValueError(
                f"{path} does not say what model it holds: expected load(name, {str(path)!r}), "
                "with the name of the model it is for"
            )
        config, removed = about.config, about.removed
        whose = f"{path}, a {family(about.config)}"
    else:
        weights = V1 if weights is None else weights
        # A path has a dot or a slash. The zoo says of an unknown model what there is.
        if isinstance(weights, str) and weights.isidentifier() and name in MODELS:
            known = _torchvision_weights(name, weights)
        config, removed = described(name)
        changed(config, changes)  # refuses them before anything is fetched
        path = fetch(known.url) if known else Path(weights)
        state, about = read(path)
        whose = f"{path} into {name}"
    wanted = changes.get("image_size")
    if known:
        changes["image_size"] = Preprocess.like(known.transforms()).size
    elif about.config and wanted is not None:
        changes["image_size"] = about.config.image_size
    config = changed(config, changes)
    try:
        if about.config:
            _check_config(about.config, config, state)
            if about.removed != removed:
                raise ValueError(f"it was saved without {about.removed} (asked for: {removed})")
        model = _filled(config, removed, state)
    except ValueError as error:
        raise ValueError(
            f"cannot load {whose}: {error}. Fields given to load, such as classes=10, make another "
            "model, as for create; image_size=384 says that of a file that does not itself"
        ) from error
    size = pair(model.config.image_size)
    if known:
        preprocess, meta = Preprocess.like(known.transforms()), known.meta
        about = About(model.config, preprocess, meta["categories"], meta.get("license"))
    if about.preprocess or model.config.channels == 3:
        model.preprocess = about.preprocess or Preprocess(size, resize=size)
    if about.classes and len(about.classes) != model.config.classes:
        raise ValueError(
            f"{path} names {len(about.classes)} classes for {model.config.classes} logits"
        )
    model.classes = about.classes or [str(i) for i in range(model.config.classes)]
    model.licence = about.licence
    return (model if wanted is None else resized(model, wanted)).eval()


def _torchvision_weights(name: str, weights: str) -> Any:
    """The member of torchvision's enumeration, which has ``url``, ``transforms`` and ``meta``."""
    known = MODELS[name][1]
    if weights not in known:
        raise ValueError(
            f"there are no weights {weights!r} for {name}: expected "
            f"{', '.join(known) or 'none'}, or the path of a file"
        )
    from minivit.import_torchvision import imported  # slow, and not needed for a file

    return imported().models.get_model_weights(name)[weights]


def _check_config(saved: Config, asked: Config, state: dict[str, Any]) -> None:
    """Refuses the configuration of a file that is not the one asked for, or not of its tensors."""
    vits = isinstance(saved, ViTConfig) and isinstance(asked, ViTConfig)
    if type(saved) is not type(asked) and not vits:
        raise ValueError(f"it holds a {family(saved)}, not a {family(asked)}")
    ours, theirs = fields_of(asked), fields_of(saved)
    if vits:  # a plain one says nothing of parts that it could have had
        ours, theirs = ours | PLAIN | ours, theirs | PLAIN | theirs
    others = [f for f in theirs if theirs[f] != ours[f] and f not in TRAINING]
    if others:
        said = [f"{field}={theirs[field]!r} (asked for: {ours[field]!r})" for field in others]
        raise ValueError(f"it was saved with {', '.join(said)}")
    # Looked at before they are built: a wrong number would take hours.
    there = len({key.split(".")[1] for key in state if key.startswith("blocks.")})
    if _blocks(saved) > (there or 100):  # blocks without any part have no tensors
        raise ValueError(f"it says that it has {_blocks(saved)} blocks, and holds {there}")


def _blocks(config: Any) -> int:
    """Counts the blocks of the model that a configuration describes."""
    if not hasattr(config, "stages"):
        return int(config.depth)
    return sum(len(stage) if isinstance(stage, str) else stage for stage in config.stages)


def _filled(config: Config, removed: Removed, state: dict[str, Any]) -> Model:
    """Makes a model of the numbers of a state dict, if they are for it."""
    try:
        with torch.device("meta"):  # no memory and no random numbers for what is replaced at once
            model = build(config, removed)
    except (RuntimeError, TypeError, ArithmeticError) as error:
        raise ValueError(f"no model can have the sizes of {config}") from error
    if is_torchvisions(state):
        heads = None if resnet.KEY in state else 1  # they show in no shape
        state = from_torchvision(state, heads=heads).state_dict()
    check_state(state, model.state_dict())
    # Copied, not assigned: what safetensors gives would change with the file that it lies in.
    model.to_empty(device="cpu").load_state_dict(state)
    return model
