"""Any model by one name: torchvision's, timm's, Hugging Face's, ours, or a function's of yours."""

import sys
from collections.abc import Callable
from importlib import import_module
from os import getcwd
from pathlib import Path
from typing import Any

from torch import nn

from minivit.catalogue import MODELS, TORCHVISION, config_for, shipped, suggest
from minivit.families import build
from minivit.files import MODEL, Metadata, describe
from minivit.import_torchvision import imported, patch_torchvision_import
from minivit.loading import fetch, load
from minivit.model import Model
from minivit.patches import pair
from minivit.preprocessing import Preprocess
from vitlab.calls import expect
from vitlab.convert.dinov2 import NAME, open_dinov2
from vitlab.convert.huggingface import open_huggingface
from vitlab.convert.loaded_model import LoadedModel, attempt, ready
from vitlab.convert.timm import open_timm


def open_any(name: str, untrained: bool = False) -> LoadedModel:
    """Opens a model of any library, which stays that library's own module.

    The name is one of

    - ``timm:vit_base_patch16_224``, with a tag or without; ``torchvision:vit_b_16``;
    - ``hf:google/vit-base-patch16-224``, a repository, or a folder that ``save_pretrained`` wrote;
    - ``runs/mine`` or ``model.safetensors``, the folder of a training or a file;
    - ``cifar10_vit``, one of :func:`~minivit.catalogue.models`, or ``dinov2_small_saliency``;
    - ``module:function``, which takes nothing and returns an ``nn.Module``, taken as it is.

    With ``untrained`` only the file of a model's sizes is fetched from the Hugging Face Hub.
    """
    prefix, colon, rest = name.partition(":")
    expect(name and (rest or not colon), "the name of a model", repr(name))
    if name == NAME:
        return open_dinov2(name, untrained)
    if prefix in LIBRARIES and colon:
        return LIBRARIES[prefix](name, untrained)
    if colon and not name.endswith(".safetensors") and not Path(name).exists():
        return _open_function(name)
    if not untrained and name in MODELS and not TORCHVISION.get(name):
        raise ValueError(f"there are no weights for {name}: it can only be opened untrained")
    model = _untrained(name) if untrained else load(name)
    return _as_it_is(model, name, lambda: ready(build(model.config, model.removed)))


def open_torchvision(name: str, untrained: bool) -> LoadedModel:
    """A classifier of torchvision, with its best weights."""
    models = imported().models
    model_name = name.partition(":")[2]
    known = models.list_models(module=models)  # its detectors are elsewhere
    expect(model_name in known, f"a classifier: {suggest(model_name, known)}", name)
    weights = models.get_model_weights(model_name).DEFAULT

    def made(weights: Any = None) -> nn.Module:
        return ready(models.get_model(model_name, weights=weights))

    if not untrained:
        fetch(weights.url)  # into torch.hub's cache, where torchvision looks first
    model = made(None if untrained else weights)
    preprocess, why = attempt(lambda: Preprocess.like(weights.transforms()))
    licence = None if untrained else weights.meta.get("license")
    return LoadedModel(model, preprocess, weights.meta["categories"], name, licence, made, why)


LIBRARIES = {"torchvision": open_torchvision, "timm": open_timm, "hf": open_huggingface}


def _as_it_is(model: nn.Module, name: str, make: Callable[[], nn.Module] | None) -> LoadedModel:
    """A model that has what is known of it as its attributes."""
    fields = ("preprocess", "classes", "licence")
    preprocess, classes, licence = (getattr(model, field, None) for field in fields)
    missing = f"{name} has no attribute preprocess, such as Preprocess((224, 224), (224, 224))"
    why = None if preprocess else missing
    return LoadedModel(ready(model), preprocess, classes, name, licence, make, why)


def _untrained(name: str) -> Model:
    """A model of ours with weights as before training, which reads images as the trained one."""
    path = shipped().get(name, Path(name))
    if name not in MODELS and (path.exists() or path.suffix == ".safetensors"):
        about = describe(path / MODEL if path.is_dir() else path)
    else:
        about = Metadata(config_for(name)[0])
    if about.config is None:
        raise ValueError(f"{name} does not say what model it holds")
    model = build(about.config, about.removed)
    size = pair(model.config.image_size)
    if about.preprocess or model.config.channels == 3:
        model.preprocess = about.preprocess or Preprocess(size, resize=size)
    model.classes = about.classes  # type: ignore[assignment]
    return model


def _open_function(name: str) -> LoadedModel:
    module, _, function = name.partition(":")
    here = getcwd()
    sys.path.insert(0, here)
    patch_torchvision_import()  # transformers, which it may import, imports torchvision
    try:
        model = getattr(import_module(module), function)()
    except Exception as error:  # whatever a stranger's code raises
        what = f"cannot open {name}, of a module {module} in {here} or one of"
        why = f"{type(error).__name__}: {error}"
        raise ValueError(f"{what} {', '.join(LIBRARIES)}: {why}") from error
    finally:
        sys.path.remove(here)
    if not isinstance(model, nn.Module):
        raise ValueError(f"expected {name} to return an nn.Module: got {type(model).__name__}")
    return _as_it_is(model, name, None)
