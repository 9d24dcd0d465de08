"""Images of where a model looks, for the audit's page."""

import base64
import io
from dataclasses import dataclass

from torch import Tensor, nn

from vitlab.claims.refusal import fault, refusal

SHOWN = 2  # images
DOTS = 90  # an inch


@dataclass(frozen=True)
class Look:
    """An image as a data URL, and what it shows."""

    source: str  # data:image/png;base64,...
    alt: str
    width: int
    height: int


def looks(model: nn.Module, images: Tensor) -> tuple[list[Look], str]:
    """Attention rollout after every block over the first image and the one in the middle.

    Returns:
        The pictures; and why there are none, where there are none.
    """
    try:
        from vitlab.figures import rollout_overlay
    except ModuleNotFoundError as error:
        return [], str(error)
    found = []
    for i in dict.fromkeys((0, len(images) // SHOWN)):
        try:
            figure = rollout_overlay(model, images[i])
        except Exception as error:  # after hours of work, pictures alone are not worth a stop
            return [], refusal(error) or fault(error)
        content = io.BytesIO()
        figure.savefig(content, format="png", dpi=DOTS, facecolor="white")
        width, height = (round(DOTS * inches) for inches in figure.get_size_inches())
        alt = (
            f"Image {i + 1} in grey under attention rollout after each of {len(figure.axes)} "
            "blocks; the brighter a patch, the more of it reaches the output."
        )
        text = base64.b64encode(content.getvalue()).decode()
        found.append(Look(f"data:image/png;base64,{text}", alt, width, height))
    return found, ""
