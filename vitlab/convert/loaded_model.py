"""A model that was opened by its name, and what opening one takes, whatever its library."""

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from torch import Tensor, nn

from minivit.import_torchvision import mend


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model, as its own library builds it, and what is known of it beside its numbers.

    Args:
        model: In evaluation mode, in float32, on the CPU.
        preprocess: Makes a batch of images: a :class:`~minivit.preprocessing.Preprocess`, or
            what a function of the user's set; none where it is not known.
        classes: Names of the logits; none where they are not known, or there are no logits.
        name: As it was asked for.
        licence: Terms of the weights, where they are stated.
        untrained: Makes the same architecture with weights as before training; none where that is
            not known.
        unprepared: Why ``preprocess`` is none.
    """

    model: nn.Module
    preprocess: Callable[[Any], Tensor] | None
    classes: Sequence[str] | None
    name: str
    licence: str | None
    untrained: Callable[[], nn.Module] | None
    unprepared: str | None = None


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
    """A package that opens models, such as timm.

    Raises:
        ModuleNotFoundError: It is not installed; the error says what installs it.
    """
    mend()  # each of them imports torchvision
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name == package:
            error.msg = f"{error}: pip install {package}"
        raise


@contextmanager
def fetching(name: str) -> Iterator[None]:
    """Around code that gets files from the Hugging Face Hub, or from its cache.

    Raises:
        ValueError: The hub has no such repository, or it needs permission.
        OSError: The files are neither in the cache nor can they be fetched.
    """
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        with quiet("timm", "transformers", "huggingface_hub"):  # their errors say the same
            yield
    except (OSError, RuntimeError, ValueError) as error:
        kind = OSError if isinstance(error, OSError) else ValueError
        why = (str(error) or type(error).__name__).splitlines()[0]
        if kind is OSError:
            why += (
                " What was fetched once is kept (HF_HOME moves it). Untrained, a model of timm or "
                "a type such as hf:dinov2 needs no file"
            )
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, RepositoryNotFoundError):  # a gated one is a kind of it
                kind = ValueError
                why = (
                    "the Hugging Face Hub has no such repository, or one that needs permission "
                    "(`hf auth login`)"
                )
            cause = cause.__cause__ or cause.__context__
        raise kind(f"cannot open {name}: {why}") from error


@contextmanager
def quiet(*names: str) -> Iterator[None]:
    """Without what the loggers of these names and libraries' warnings say to their authors."""
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
