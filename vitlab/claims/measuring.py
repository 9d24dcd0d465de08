"""What a claim that speaks of one trained model measures on any model."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from traceback import extract_tb
from typing import TypeVar

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from vitlab.calls import logits
from vitlab.instruments.running import evaluating

REFUSALS = (ValueError, TypeError, RuntimeError)  # what instruments and models refuse with
FEW = 16  # images for the figure of the model before training
GROUPS = 4  # of images, for intervals of figures that no single image has
LEAST = 4  # images in a group
T = TypeVar("T")


class NotApplicable(ValueError):
    """The claim cannot be asked of this model, or of these images; the message says why."""


def require(condition: object, reason: str) -> None:
    """Raises NotApplicable for this reason, unless the condition holds."""
    if not condition:
        raise NotApplicable(reason)


def needed(value: T | None, what: str) -> T:
    """The value. NotApplicable, where there is none, says what is needed."""
    if value is None:
        raise NotApplicable(f"needs {what}")
    return value


@dataclass(frozen=True)
class Subject:
    """A model of any library, in evaluation mode, and images as it reads them."""

    model: nn.Module
    images: Float[Tensor, "images channels height width"]  # that it has not been trained on
    labels: Int64[Tensor, "images"] | None = None  # where they are classes of the model
    untrained: Callable[[], nn.Module] | None = None  # makes the model as before training
    beside: nn.Module | None = None  # another that reads the same images, to compare with
    white: tuple[float, ...] | None = None  # less black, of each channel, as the model reads them
    batch_size: int = 8

    def second(self) -> nn.Module:
        """The other model, for a claim that compares two."""
        return needed(self.beside, "a second model: --beside NAME")

    def classes(self) -> Int64[Tensor, "images"]:
        """The class of each image."""
        what = "the class of each image: give a folder of images for each class"
        return needed(self.labels, what).cpu()

    def groups(self) -> list[Tensor]:
        """The images in four groups, or in one where there are too few for four."""
        return list(self.images.chunk(GROUPS if len(self.images) >= GROUPS * LEAST else 1))

    def accuracy(self, model: nn.Module, images: Tensor) -> float:
        """The fraction that a model gets right of these images: the subject's, changed."""
        with evaluating(model):
            batches = images.split(self.batch_size)
            answers = torch.cat([logits(model, batch).argmax(1).cpu() for batch in batches])
        return (answers == self.classes()).double().mean().item()

    def beyond_chance(self, model: nn.Module) -> tuple[float, float]:
        """Accuracy, and that of a guess, of a model that is right more often than by chance."""
        with evaluating(model):
            chance = 1 / logits(model, self.images[:1]).shape[1]
        right = self.accuracy(model, self.images)
        knows = right > chance + 3 * (chance * (1 - chance) / len(self.images)) ** 0.5
        require(knows, f"{type(model).__name__} is right no more often than by chance")
        return right, chance


def with_mean(parts: list[Tensor], images: list[Tensor]) -> list[Tensor]:
    """The mean over all images of what is a mean over each group, and then that of each group."""
    count = sum(map(len, images))
    shares = (part * (len(x) / count) for part, x in zip(parts, images, strict=True))
    return [sum(shares, torch.zeros(())), *parts]


@dataclass(frozen=True)
class Measured:
    """A figure of the model over all images, in the unit of the claim's card."""

    figure: float
    each: Float[Tensor, "images"] | None = None  # the same by image or group, for an interval
    baselines: Mapping[str, float] = field(default_factory=dict)  # "uniform attention", by name
    curves: Mapping[str, Float[Tensor, "layers"]] = field(default_factory=dict)  # by name
    untrained: "Measured | None" = None  # what the model before training gives


@dataclass(frozen=True)
class Measurement:
    """How a claim is measured."""

    function: Callable[[Subject], Measured]  # gives the figure, or raises
    slow: bool = False  # whether --quick leaves it out
    untrained: bool = False  # whether the model before training is asked, too

    def measure(self, subject: Subject) -> Measured:
        """The figure, and before training; NotApplicable where an instrument or model refused."""
        try:
            result = self.function(subject)
        except REFUSALS as error:
            if isinstance(error, NotApplicable) or out_of_memory(error):
                raise
            frames = [frame for frame in extract_tb(error.__traceback__) if frame.name != "expect"]
            where = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}"
            raise NotApplicable(f"{first_line(error)} ({where})") from error
        what = "its figure is not a finite number"
        require(math.isfinite(result.figure), f"{what}: {result.figure}")
        each = result.each
        require(each is None or each.isfinite().all(), f"{what} for some of the images")
        before = self._before_training(subject)
        return replace(result, untrained=before) if before else result

    def _before_training(self, subject: Subject) -> Measured | None:
        """The same of the model before training, on a few of the images, where it can be asked."""
        if not self.untrained or subject.untrained is None:
            return None
        model, images = subject.untrained().eval(), subject.images[:FEW]
        labels = None if subject.labels is None else subject.labels[:FEW]
        twin = replace(subject, model=model, images=images, labels=labels, untrained=None)
        try:
            return self.measure(twin)
        except NotApplicable:  # as for positions that begin as zeros
            return None


MEASUREMENTS: dict[str, Measurement] = {}  # by claim
Measure = Callable[[Subject], Measured]


def measures(*claims: str, slow: bool = False, untrained: bool = False) -> Callable[..., Measure]:
    """Decorates the function that measures what claims say of one model."""

    def register(function: Measure) -> Measure:
        MEASUREMENTS.update(dict.fromkeys(claims, Measurement(function, slow, untrained)))
        return function

    return register


def first_line(error: Exception) -> str:
    """An error's message in one line, or its type where it has none."""
    return f"{error}".partition("\n")[0] or type(error).__name__


def why_not(model: nn.Module, images: Tensor) -> str:
    """Why a model does not run on images; nothing where it does."""
    try:
        with torch.no_grad():
            model(images)
    except Exception as error:  # a stranger's model may raise anything
        return f"{type(error).__name__}: {first_line(error)}"
    return ""


def out_of_memory(error: Exception) -> bool:
    """Whether the processor or the GPU had too little memory."""
    message = re.search("out of memory|allocate memory", first_line(error))
    return isinstance(error, MemoryError) or message is not None
