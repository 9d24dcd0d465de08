"""A slider that works on a page without a kernel: its frames are drawn in advance."""

import base64
import io
import json
from collections.abc import Callable, Sequence
from html import escape

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.text import Text

from vitlab.boundary import checked
from vitlab.rendering import rendered

LEAST = 1.7  # points of type per inch of a figure's width: 8 pixels where it is shown 342 wide


@checked
class Frames:
    """A slider over figures drawn in advance: plain HTML, no kernel, no widget library, no network.

    ``draw`` gives the figure for one of the values. ``label`` says what the slider changes, ``alt``
    what a frame shows, with ``{value}`` for the slider's.
    """

    def __init__(
        self, draw: Callable, values: Sequence, label: str, alt: str, start: int = 0, dpi: int = 80
    ) -> None:
        self.label, self.start = label, start
        self.names = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
        self.alts = [alt.format(value=name) for name in self.names]
        self.pictures = [_webp(draw(value), dpi) for value in values]

    def __repr__(self) -> str:
        return f"Frames({self.label}: {', '.join(self.names)})"

    def _repr_html_(self) -> str:
        return rendered("frames.html", **vars(self), escape=escape, dumps=json.dumps)


def _webp(figure: Figure, dpi: int) -> str:
    """A figure as base64 WebP, which takes a fifth of PNG for a photograph."""
    _enlarge(figure)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="webp", dpi=dpi, pil_kwargs={"quality": 80})
    plt.close(figure)
    return base64.b64encode(buffer.getvalue()).decode()


def _enlarge(figure: Figure) -> None:
    """Raises every text below the least size for a phone."""
    least = LEAST * figure.get_figwidth()
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            if any(float(label.get_fontsize()) < least for label in axis.get_ticklabels()):
                axis.set_tick_params(labelsize=least)  # for ticks that are placed later, too
    for text in figure.findobj(Text):
        text.set_fontsize(max(float(text.get_fontsize()), least))
