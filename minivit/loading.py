"""Models with trained weights: those that come with the package, torchvision's, or a file's."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from http.client import HTTPException
from os import PathLike
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlparse

import torch

from minivit import torchvision_resnet as resnet
from minivit.catalogue import MODELS, TORCHVISION, V1, config_for, replace_config, shipped
from minivit.families import build, family
from minivit.files import MODEL, Metadata, atomic_write, fields_of, read
from minivit.model import Config, Model, Removed, check_state
from minivit.patches import pair
from minivit.positions import resample
from minivit.preprocessing import Preprocess
from minivit.shapes import Size
from minivit.torchvision import from_torchvision, is_torchvisions
from minivit.variants import PLAIN
from minivit.vit import ViTConfig

# Fields of a configuration that matter in training alone: a file may have been trained with others.
TRAINING = {"dropout", "attention_dropout", "stochastic_depth"}


def load(
    name: str | PathLike[str], weights: str | PathLike[str] | None = None, **changes: Any
) -> Model:
    """Makes a model with trained weights: on the CPU, in float32 and evaluation mode.

    Its ``preprocess`` makes a batch of images: torchvision's for its weights, the file's own, or
    else a resize and crop to the model's size and ImageNet's mean and standard deviation; none for
    other than three channels. Its ``classes`` are the names of the logits, or their numbers.

    Args:
        name: One of :func:`~minivit.catalogue.models`. Or the path of a file from
            :func:`~minivit.files.save`, or of the folder of a training: these say what model
            they hold.
        weights: One of torchvision's names, such as ``"IMAGENET1K_V1"``: fetched once, checked, and
            kept in torch.hub's cache. Or the path of a file: ``.safetensors``, or a state dict
            written by ``torch.save``, with minivit's names or torchvision's.
            Default: those that come with the package, else ``"IMAGENET1K_V1"``.
        **changes: Sizes that the weights are for, such as ``classes=10``, as for
            :func:`~minivit.catalogue.create`, or what counts in training, such as ``dropout=0.1``.
            An ``image_size`` other than that of the weights gives :func:`resized`; where a
            file does not say its size, this does.

    Raises:
        ValueError: A damaged file, or weights for another model: keys missing, surplus or of
            another shape, numbers that are not finite, another configuration.
    """
    name = str(name)
    if weights is None and name in shipped():
        return load_file(shipped()[name], changes)
    if name.endswith(".safetensors") or (name not in [*MODELS, *shipped()] and Path(name).exists()):
        if weights is not None:
            raise ValueError(f"{name} holds weights itself: got weights={str(weights)!r}, too")
        return load_file(Path(name), changes)
    weights = V1 if weights is None else weights
    # A path has a dot or a slash. The catalogue says of an unknown model what there is.
    if isinstance(weights, str) and weights.isidentifier() and name in MODELS:
        return load_torchvision(name, weights, changes)
    config, removed = config_for(name)
    replace_config(config, changes)  # refuses them before the file is read
    state, about = read(Path(weights))
    return _filled(f"{weights} into {name}", state, about, (config, removed), changes)


def load_file(path: Path, changes: Mapping[str, Any]) -> Model:
    """The model of a file, or of a training's folder, that says what it holds."""
    path = path / MODEL if path.is_dir() else path
    state, about = read(path)
    if about.config is None:
        expected = f"load(name, {str(path)!r}), with its model's name"
        raise ValueError(f"{path} does not say what model it holds: expected {expected}")
    whose = f"{path}, a {family(about.config)}"
    return _filled(whose, state, about, (about.config, about.removed), changes)


def load_torchvision(name: str, weights: str, changes: Mapping[str, Any]) -> Model:
    """A model of the catalogue with torchvision's weights, fetched or from torch.hub's cache."""
    names = TORCHVISION.get(name, ())
    if weights not in names:
        known = " or ".join(names) or "no weights of torchvision's"
        raise ValueError(f"expected {known} or a file's path for {name}: got {weights!r}")
    from minivit.import_torchvision import imported  # slow, and not needed for a file

    entry = imported().models.get_model_weights(name)[weights]
    preprocess = Preprocess.like(entry.transforms())
    config = replace_config(MODELS[name], {**changes, "image_size": preprocess.size})
    about = Metadata(config, preprocess, entry.meta["categories"], entry.meta.get("license"))
    path = fetch(entry.url)
    return _filled(f"{path} into {name}", read(path)[0], about, (config, ()), changes)


def _filled(
    whose: str,
    state: dict[str, Any],
    about: Metadata,
    built: tuple[Config, Removed],
    changes: Mapping[str, Any],
) -> Model:
    """Makes a model of the numbers of a state dict, if they are for it."""
    wanted = changes.get("image_size")
    if about.config and wanted is not None:
        changes = {**changes, "image_size": about.config.image_size}
    config, removed = replace_config(built[0], changes), built[1]
    try:
        if about.config:
            _check_config(about, config, removed, state)
        with torch.device("meta"):  # no memory and no random numbers for what is replaced at once
            model = build(config, removed)
        if is_torchvisions(state):
            heads = None if resnet.KEY in state else 1  # they show in no shape
            state = dict(from_torchvision(state, heads=heads).state_dict())
        check_state(state, model.state_dict())
        if about.classes and len(about.classes) != config.classes:
            raise ValueError(f"{len(about.classes)} classes are named for {config.classes} logits")
    except (ValueError, RuntimeError, TypeError, ArithmeticError) as error:
        raise ValueError(
            f"cannot load {whose}: {str(error).splitlines()[0]}. Fields given to load, such as "
            "classes=10, make another model, as for create; image_size=384 says that of a file "
            "that does not itself"
        ) from error
    # Copied, not assigned: what safetensors gives would change with the file that it lies in.
    model.to_empty(device="cpu").load_state_dict(state)
    size = pair(config.image_size)
    if about.preprocess or config.channels == 3:
        model.preprocess = about.preprocess or Preprocess(size, resize=size)
    model.classes = about.classes or [str(i) for i in range(config.classes)]
    model.licence = about.licence
    return (model if wanted is None else resized(model, wanted)).eval()


def _check_config(about: Metadata, asked: Config, removed: Removed, state: dict[str, Any]) -> None:
    """Refuses the configuration of a file that is not the one asked for, or not of its tensors."""
    saved: Any = about.config
    ours: dict[str, Any] = {"family": family(asked), "removed": removed, **fields_of(asked)}
    theirs: dict[str, Any] = {"family": family(saved), "removed": about.removed, **fields_of(saved)}
    if isinstance(saved, ViTConfig) and isinstance(asked, ViTConfig):
        # A plain one says nothing of parts that it could have had.
        ours, theirs = ours | PLAIN | ours, theirs | PLAIN | theirs
        ours["family"] = theirs["family"]
    others = [f for f in theirs if theirs[f] != ours.get(f) and f not in TRAINING]
    differences = [f"{f}={theirs[f]!r} (asked for: {ours.get(f)!r})" for f in others]
    # Looked at before they are built: a wrong number would take hours.
    there = len({key.split(".")[1] for key in state if key.startswith("blocks.")})
    stages = getattr(saved, "stages", ())  # their blocks: letters, or a number
    blocks = sum(len(stage) if isinstance(stage, str) else stage for stage in stages)
    depth = getattr(saved, "depth", blocks)
    if depth > (there or 100):  # blocks without any part have no tensors
        differences.append(f"{depth} blocks, and holds {there}")
    if differences:
        raise ValueError(f"it was saved with {', '.join(differences)}")


def resized(model: Model, image_size: Size) -> Model:
    """Gives a copy of a model that is made for images of another size; its patches stay.

    Positions are resampled, as :func:`~minivit.positions.resample` does, so the copy answers as the
    model does to images of that size. ``preprocess`` covers the size with the whole of an image's
    shorter side. ValueError if the weights are for one number of tokens, as a Mixer's are.
    """
    size = pair(image_size)
    if size == pair(model.config.image_size):
        return model
    config: Any = replace(model.config, image_size=size)
    with torch.device("meta"):
        other: Any = build(config, model.removed)
    state, source = model.state_dict(), cast(Any, model)
    if "positions.table" in state:
        grids = source.positions.grid, other.positions.grid
        state["positions.table"] = resample(state["positions.table"], *grids)
    if any(value.shape != state[key].shape for key, value in other.state_dict().items()):
        whose = f"the weights of a {family(config)}"
        raise ValueError(f"{whose} are for one number of tokens: got {image_size=}")
    first = next(model.parameters())
    other.to_empty(device=first.device).to(first.dtype).load_state_dict(state)
    other.classes, other.licence = model.classes, model.licence
    if isinstance(model.preprocess, Preprocess):
        other.preprocess = replace(model.preprocess, size=size, resize=size)
    return other.train(model.training)


def fetch(url: str) -> Path:
    """Gives the file at a URL: from torch.hub's cache, or downloaded with a progress bar.

    Both are checked against the hash that torchvision writes into a file's name (the first eight
    hexadecimal digits of its SHA-256). A cached file that differs is fetched again, and stays until
    the new one is complete. ``TORCH_HOME`` moves the cache.
    """
    name = Path(urlparse(url).path).name
    digits = re.findall(r"-([0-9a-f]{8,})\.", name)[-1]
    cached = Path(torch.hub.get_dir(), "checkpoints", name)
    try:
        if cached.exists():
            with cached.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest().startswith(digits):
                    return cached
        cached.parent.mkdir(parents=True, exist_ok=True)
        # torch.hub leaves its own scratch file on a full disk
        with atomic_write(cached) as scratch:
            torch.hub.download_url_to_file(url, str(scratch), digits)
    except (OSError, HTTPException, RuntimeError) as error:  # torch.hub says RuntimeError of a hash
        raise OSError(
            f"could not fetch {url}: {error}. The file can also be put there by hand: {cached}"
        ) from error
    return cached
