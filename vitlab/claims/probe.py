"""A probe: what a claim that speaks of one trained model measures on any model."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps

from jaxtyping import Float, Int64
from torch import Tensor, nn

from vitlab.claims.refusal import refusal


class CannotAsk(ValueError):
    """The claim cannot be asked of this model, or of these images; the message says why."""


@dataclass(frozen=True)
class Subject:
    """What is audited: a model, in evaluation mode, and images as it reads them.

    Args:
        model: Any library's.
        images: Preprocessed for the model, and not among those that it was trained on.
        labels: The class of each image, where the images come with classes that are the model's.
        untrained: Makes the same model with weights as they are before training, where that is
            known: for the baseline.
        beside: Another model, which reads the same images, for the claims that compare two.
        white: How far white is above black in the numbers that the model reads, for each channel:
            one over the standard deviation that the preprocessing divides by. For the claims about
            noise, whose strength is a fraction of it.
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
            over images: its interval comes from them.
        baselines: By name (``"untrained"``, ``"uniform attention"``), what the figure would be.
        curves: By name, a line of the report's plot: a value for each block or each layer.
    """

    figure: float
    each: Float[Tensor, "images"] | None = None
    baselines: Mapping[str, float] = field(default_factory=dict)
    curves: Mapping[str, Float[Tensor, "layers"]] = field(default_factory=dict)


@dataclass(frozen=True)
class Probe:
    """How a claim is asked of a model.

    Args:
        claim: Its id in the ledger.
        asks: The question in a sentence, with "this model" for the model.
        measure: Gives a finite figure, or raises :class:`CannotAsk`; another error is a fault of
            the audit.
        slow: Whether ``--quick`` leaves it out.
        needs: What it can be known by without running the model that the claim cannot be asked:
            functions that raise :class:`CannotAsk`. ``measure`` calls them first.
    """

    claim: str
    asks: str
    measure: Callable[[Subject], Measured]
    slow: bool = False
    needs: tuple[Callable[[Subject], object], ...] = ()


PROBES: dict[str, Probe] = {}  # by claim


def probe(
    claim: str, asks: str, slow: bool = False, needs: tuple[Callable[[Subject], object], ...] = ()
) -> Callable[[Callable[[Subject], Measured]], Callable[[Subject], Measured]]:
    """Decorates the function that measures what a claim says of one model.

    Where an instrument refuses the model, or the model stops, the claim cannot be asked. Any other
    error is a fault of the audit, and goes on as it is.
    """

    def register(measure: Callable[[Subject], Measured]) -> Callable[[Subject], Measured]:
        if claim in PROBES:
            raise ValueError(f"{claim} has a probe already: {PROBES[claim].measure.__name__}")

        @wraps(measure)
        def asked(subject: Subject) -> Measured:
            try:
                for need in needs:
                    need(subject)
                found = measure(subject)
            except CannotAsk:
                raise
            except Exception as error:
                if (why := refusal(error)) is None:
                    raise
                raise CannotAsk(why) from error
            if not math.isfinite(found.figure):
                raise CannotAsk(f"the figure is {found.figure}, not a finite number")
            return found

        PROBES[claim] = Probe(claim, asks, asked, slow, needs)
        return asked

    return register
