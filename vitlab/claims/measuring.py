"""What a claim that speaks of one trained model measures on any model."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from traceback import extract_tb

from jaxtyping import Float, Int64
from torch import Tensor, nn

REFUSALS = (ValueError, TypeError, RuntimeError)  # what instruments and models refuse with
FEW = 16  # images for the figure of the model before training


class NotApplicable(ValueError):
    """The claim cannot be asked of this model, or of these images; the message says why."""


@dataclass(frozen=True)
class Subject:
    """A model, in evaluation mode, and images as it reads them.

    Args:
        model: Any library's.
        images: Not among those that the model was trained on.
        labels: The class of each image, where the images come with classes that are the model's.
        untrained: Makes the same model with weights as they are before training, where that is
            known: for the baseline.
        beside: Another model, which reads the same images, for the claims that compare two.
        white: How far white is above black in the numbers that the model reads, for each channel:
            for the claims about noise, whose strength is a fraction of it.
        batch_size: Images at a time.
    """

    model: nn.Module
    images: Float[Tensor, "images channels height width"]
    labels: Int64[Tensor, "images"] | None = None
    untrained: Callable[[], nn.Module] | None = None
    beside: nn.Module | None = None
    white: tuple[float, ...] | None = None
    batch_size: int = 8


@dataclass(frozen=True)
class Measured:
    """A figure of the model, in the unit of the claim's card.

    Args:
        figure: The estimate over all images.
        each: The same for each image alone, or for each group of them, where the figure is a mean
            over images: its interval comes from them, where there are several.
        baselines: By name (``"untrained"``, ``"uniform attention"``), what the figure would be.
        curves: By name, a value for each block or each layer.
    """

    figure: float
    each: Float[Tensor, "images"] | None = None
    baselines: Mapping[str, float] = field(default_factory=dict)
    curves: Mapping[str, Float[Tensor, "layers"]] = field(default_factory=dict)


@dataclass(frozen=True)
class Measurement:
    """How a claim is measured.

    Args:
        claim: Its id in the ledger.
        function: Gives the figure, or raises.
        slow: Whether ``--quick`` leaves it out.
        untrained: Whether the figure before training is a baseline.
    """

    claim: str
    function: Callable[[Subject], Measured]
    slow: bool = False
    untrained: bool = False

    def measure(self, subject: Subject) -> Measured:
        """The figure, which is finite, and its baselines.

        Raises:
            NotApplicable: An instrument, or the model, refused; any other error is the audit's own.
        """
        try:
            result = self.function(subject)
        except Exception as error:
            if isinstance(error, NotApplicable) or (reason := refusal(error)) is None:
                raise
            raise NotApplicable(reason) from error
        if not math.isfinite(result.figure):
            raise NotApplicable(f"its figure is not a finite number: {result.figure}")
        if result.each is not None and not result.each.isfinite().all():
            raise NotApplicable("its figure is not a finite number for some of the images")
        if not self.untrained:
            return result
        before = before_training(subject, lambda twin: self.function(twin).figure)
        return replace(result, baselines={**result.baselines, **before})


MEASUREMENTS: dict[str, Measurement] = {}  # by claim


def measures(
    *claims: str, slow: bool = False, untrained: bool = False
) -> Callable[[Callable[[Subject], Measured]], Callable[[Subject], Measured]]:
    """Decorates the function that measures what claims say of one model."""

    def register(function: Callable[[Subject], Measured]) -> Callable[[Subject], Measured]:
        MEASUREMENTS.update({c: Measurement(c, function, slow, untrained) for c in claims})
        return function

    return register


def before_training(subject: Subject, measure: Callable[[Subject], float]) -> dict[str, float]:
    """The figure of the model before training, on a few of the images, where it has one."""
    if subject.untrained is None:
        return {}
    labels = None if subject.labels is None else subject.labels[:FEW]
    model, images = subject.untrained().eval(), subject.images[:FEW]
    twin = replace(subject, model=model, images=images, labels=labels, untrained=None)
    try:
        figure = measure(twin)
    except Exception as error:
        if refusal(error) is None:
            raise
        return {}  # as for positions that begin as zeros
    return {"untrained": figure} if math.isfinite(figure) else {}


def refusal(error: Exception) -> str | None:
    """Why a model cannot be asked; None for an error of the audit's own, or too little memory.

    A mistake may have the type of a refusal, so the sentence says where it comes from, unless the
    measurement itself has said it.
    """
    if out_of_memory(error) or not isinstance(error, REFUSALS):
        return None
    if isinstance(error, NotApplicable) or error.__traceback__ is None:
        return first_line(error)
    last = extract_tb(error.__traceback__)[-1]
    return f"{first_line(error)} ({Path(last.filename).name}, line {last.lineno})"


def first_line(error: Exception) -> str:
    """An error's message in one line, or its type where it has none."""
    return f"{error}".partition("\n")[0] or type(error).__name__


def out_of_memory(error: Exception) -> bool:
    """Whether the processor or the GPU had too little memory."""
    message = re.search("out of memory|allocate memory", first_line(error))
    return isinstance(error, MemoryError) or message is not None
