"""A model that was opened by its name, and what opening one takes, whatever its library."""

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from torch import Tensor, nn

from minivit.import_torchvision import advice, patch_torchvision_import


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model, as its own library builds it, and what is known of it beside its numbers."""

    model: nn.Module  # in evaluation mode, in float32, on the CPU
    preprocess: Callable[[Any], Tensor] | None  # makes a batch of images
    classes: Sequence[str] | None  # the names of the logits
    name: str
    licence: str | None  # of the weights
    untrained: Callable[[], nn.Module] | None  # makes the model as before training
    unprepared: str | None = None  # why there is no ``preprocess``

    def read(self, picture: Any) -> Tensor:
        """A batch of one image as the model reads it; ValueError where nobody knows how."""
        if self.preprocess is None:
            raise ValueError(f"{self.unprepared}: expected a model that says how")
        pixels = self.preprocess(picture)
        return pixels[None] if pixels.ndim == 3 else pixels


def ready(model: nn.Module) -> nn.Module:
    """The model in evaluation mode, in float32, on the CPU."""
    return model.to("cpu").float().eval()


def attempt(make: Callable[[], Any]) -> tuple[Any, str | None]:
    """The preprocessing that a function makes, or why it cannot."""
    try:
        return make(), None
    except (ValueError, OSError, AttributeError, TypeError, KeyError) as error:
        return None, f"how its images are prepared is not known: {error}"


def library(package: str) -> Any:
    """A package that opens models, such as timm; where it is missing, the error says the way."""
    patch_torchvision_import()  # each of them imports torchvision
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name == package:
            error.msg = f"{error}: {advice(package)}"
        raise


@contextmanager
def fetching(name: str) -> Iterator[None]:
    """Around code that gets files from the Hugging Face Hub: OSError where none can be had."""
    try:
        with quiet():  # what loggers say, the errors say too
            yield
    except (OSError, RuntimeError, ValueError) as error:
        what = f"cannot open {name}: {(str(error) or type(error).__name__).splitlines()[0]}"
        if not isinstance(error, OSError):
            raise ValueError(what) from error
        raise OSError(f"{what} (HF_HOME moves it; timm's need no file untrained)") from error


@contextmanager
def quiet() -> Iterator[None]:
    """Without warnings and what loggers say, which is meant for the libraries' authors."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(before)
