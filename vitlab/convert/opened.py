"""A model that was opened by its name, and the library that it came from."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from torch import Tensor, nn

from minivit.import_torchvision import mend


@dataclass(frozen=True, eq=False)
class Opened:
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


def library(package: str) -> Any:
    """A package that opens models, such as timm.

    Raises:
        ModuleNotFoundError: It is not installed; the error says what installs it.
    """
    mend()  # each of them imports torchvision
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise ModuleNotFoundError(f"{error}: pip install {package}", name=package) from error


@contextmanager
def fetching(name: str) -> Iterator[None]:
    """Around code that gets files from the Hugging Face Hub, or from its cache.

    Raises:
        ValueError: The hub has no such repository, or it needs permission.
        OSError: The files are neither in the cache nor can they be fetched.
    """
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        for cause in _causes(error):
            if isinstance(cause, RepositoryNotFoundError):  # a gated one is a kind of it
                raise ValueError(
                    f"cannot open {name}: the Hugging Face Hub has no such repository, or one that "
                    "needs permission (`hf auth login`)"
                ) from error
        if not isinstance(error, OSError):
            raise ValueError(f"cannot open {name}: {_first_line(error)}") from error
        raise OSError(
            f"cannot open {name}: {_first_line(error)} What was fetched once is kept (HF_HOME "
            "moves it). Untrained, a model of timm or a type such as hf:dinov2 needs no file"
        ) from error


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
