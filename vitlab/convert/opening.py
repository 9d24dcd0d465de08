"""Any model by one name: torchvision's, timm's, Hugging Face's, ours, or a function's of yours."""

import sys
from collections.abc import Callable
from importlib import import_module
from os import getcwd
from pathlib import Path
from typing import Any

from torch import nn

from minivit.catalogue import MODELS, described, shipped
from minivit.families import build
from minivit.files import MODEL, About, describe
from minivit.loading import load
from minivit.model import Model
from minivit.patches import pair
from minivit.preprocessing import Preprocess
from vitlab.convert.opened import Opened, ready
from vitlab.convert.other_libraries import open_huggingface, open_timm, open_torchvision

__all__ = ["Opened", "open_any"]

LIBRARIES: dict[str, Callable[[str, bool], Opened]] = {
    "torchvision": open_torchvision,
    "timm": open_timm,
    "hf": open_huggingface,
}


def open_any(name: str, untrained: bool = False) -> Opened:
    """Opens a model of any library, which stays that library's own module.

    Args:
        name: One of

            - ``timm:vit_base_patch16_224``, a model of timm, with a tag or without;
            - ``hf:google/vit-base-patch16-224``, a repository of the Hugging Face Hub, or a folder
              that ``save_pretrained`` wrote;
            - ``torchvision:vit_b_16``, a classifier of torchvision;
            - ``runs/mine`` or ``model.safetensors``, the folder of a training or a file of
              :func:`~minivit.files.save`;
            - ``cifar10_vit``, one of :func:`~minivit.catalogue.models`;
            - ``module:function``, a function that takes nothing and returns an ``nn.Module``. The
              module is looked for in the current folder first, as ``python -m`` does; what the
              model has as ``preprocess``, ``classes`` and ``licence`` goes with it.

        untrained: Whether its weights are as before training; nothing is fetched then, but for a
            model of the Hugging Face Hub the file of its sizes, which has to be in the cache or
            within reach. ``hf:dinov2``, a type, needs no file: it has the sizes of the type's
            default. A ``module:function`` is taken as it is.

    Raises:
        ModuleNotFoundError: The library is not installed.
        ValueError: There is no such name, or no weights for it, or the function returns no module.
        FileNotFoundError: There is no such file.
        OSError: The weights are not in the library's cache and cannot be fetched.
    """
    prefix, colon, rest = name.partition(":")
    if not name or (colon and not rest):
        raise ValueError(f"expected the name of a model: got {name!r}")
    if prefix in LIBRARIES and colon:
        return LIBRARIES[prefix](name, untrained)
    if colon and not name.endswith(".safetensors") and not Path(name).exists():
        return _of_function(name)
    return _ours(name, untrained)


def _ours(name: str, untrained: bool) -> Opened:
    path = Path(name)
    named = name in [*MODELS, *shipped()]
    if not named and not path.exists() and path.suffix != ".safetensors":
        described(name)  # says what names there are
    if not untrained and name in MODELS and not MODELS[name][1]:
        raise ValueError(f"there are no weights for {name}: it can only be opened untrained")
    file = str(path / MODEL) if not named and path.is_dir() else name
    model = _untrained(file) if untrained else load(file)

    def twin() -> nn.Module:
        return ready(build(model.config, model.removed))

    preprocess: Any = model.preprocess
    why = None if preprocess else f"{name} does not say how its images are prepared"
    return Opened(ready(model), preprocess, model.classes, name, model.licence, twin, why)


def _untrained(name: str) -> Model:
    """A model of ours with weights as before training, which reads images as the trained one."""
    if name in MODELS:
        about = About(MODELS[name][0])
    else:
        about = describe(shipped()[name] if name in shipped() else Path(name))
    if about.config is None:
        raise ValueError(f"{name} does not say what model it holds")
    model = build(about.config, about.removed)
    size = pair(model.config.image_size)
    if about.preprocess or model.config.channels == 3:
        model.preprocess = about.preprocess or Preprocess(size, resize=size)
    if about.classes:
        model.classes = about.classes
    return model


def _of_function(name: str) -> Opened:
    module_name, _, function_name = name.partition(":")
    here = getcwd()
    sys.path.insert(0, here)
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and module_name.startswith(error.name):
            raise ValueError(
                f"cannot open {name}: there is no module {module_name} in {here} or among the "
                f"installed ones, and {module_name} is none of {', '.join(LIBRARIES)}"
            ) from error
        raise
    finally:
        sys.path.remove(here)
    function: Any = getattr(module, function_name, None)
    if not callable(function):
        raise ValueError(f"cannot open {name}: {module_name} has no function {function_name}")
    try:
        model = function()
    except Exception as error:  # whatever a stranger's function raises
        raise ValueError(f"cannot open {name}: {type(error).__name__}: {error}") from error
    if not isinstance(model, nn.Module):
        raise ValueError(f"expected {name} to return an nn.Module: got {type(model).__name__}")
    preprocess: Any = getattr(model, "preprocess", None)
    why = None if preprocess else f"the model that {name} returns has no attribute preprocess"
    classes, licence = getattr(model, "classes", None), getattr(model, "licence", None)
    return Opened(ready(model), preprocess, classes, name, licence, None, why)
