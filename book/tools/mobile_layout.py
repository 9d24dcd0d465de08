"""Draws figures a second time for phones: what stands side by side is stacked.

``book.tools.execute`` has its kernels call :func:`install`. A figure with a row of panels then
brings a WebP beside its PNG.
"""

import base64
import io
import pickle
from collections.abc import Callable

import matplotlib.pyplot as plt
from IPython.core.formatters import BaseFormatter
from IPython.core.getipython import get_ipython
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox
from traitlets import Any, Unicode

MIME = "image/webp"
WIDTH = 4.0  # inches
HIGHER = 1.4  # a panel that gets wider may grow by this factor


class FigureFormatter(BaseFormatter):
    """What IPython asks for another form of a figure, as base64."""

    format_type, draw = Unicode(), Any()

    def __call__(self, shown: object) -> str | None:
        """For any object: Matplotlib takes its figures out of a formatter's list of types."""
        return self.draw(shown) if isinstance(shown, Figure) else None


def add_forms(forms: dict[str, Callable[[Figure], str | None]]) -> None:
    """Adds forms of figures, by MIME type, to those that this kernel shows."""
    formatters = get_ipython().display_formatter.formatters
    for mime, draw in forms.items():
        formatters[mime] = FigureFormatter(format_type=mime, draw=draw)


def install() -> None:
    """Has this kernel show figures for phones, too."""
    add_forms({MIME: encode})


def encode(figure: Figure) -> str | None:
    """The stacked figure as base64, or none where nothing stands side by side."""
    if not panels(figure):
        return None
    copy = pickle.loads(pickle.dumps(figure))
    try:
        stack(copy)
        lossy, exact = io.BytesIO(), io.BytesIO()  # the latter for lines and squares
        copy.draw_without_rendering()  # the layout moves what it holds only then
        # The sheet, made larger where a label or a legend is wider than it.
        frame = Bbox.union([copy.bbox_inches, copy.get_tightbbox()])
        for file, options in (lossy, {"quality": 80, "method": 6}), (exact, {"lossless": True}):
            copy.savefig(file, format="webp", bbox_inches=frame, pil_kwargs=options)
    finally:
        plt.close(copy)
    return base64.b64encode(min(lossy.getvalue(), exact.getvalue(), key=len)).decode()


def panels(figure: Figure) -> list[Axes]:
    """From left to right, if they stand in one row, two to four of them, and not much else."""
    axes = [ax for ax in figure.axes if ax.get_subplotspec() and not hasattr(ax, "_colorbar")]
    grids = {ax.get_gridspec() for ax in axes}
    if len(grids) != 1 or figure.get_figwidth() <= 1.2 * WIDTH:
        return []
    (grid,) = grids
    widths = grid.get_width_ratios()
    one_row = grid.nrows == 1 and 2 <= grid.ncols == len(axes) <= 4
    return axes if one_row and min(widths) > 0.3 * max(widths) else []


def stack(figure: Figure) -> None:
    axes = panels(figure)
    columns = 2 if len(axes) == 4 and not any(ax.axison for ax in axes) else 1
    (width, height), rows = figure.get_size_inches(), len(axes) // columns
    wider = WIDTH / columns / (width / len(axes))
    grid = figure.add_gridspec(rows, columns)
    for i, ax in enumerate(axes):
        ax.set_subplotspec(grid[i // columns, i % columns])
        for other in axes[:i]:
            if ax.get_shared_y_axes().joined(ax, other):
                ax.tick_params(labelleft=True)
                ax.set_ylabel(ax.get_ylabel() or other.get_ylabel())
        for text in ax.texts:
            if isinstance(text, Annotation) and text.xycoords == "axes fraction" and text.xy[0] > 1:
                text.xy, text.xyann = (0.5, -0.28), (0.5, -0.14)  # an arrow to the next panel
    figure.set_size_inches(WIDTH, rows * (height * min(wider, HIGHER) + 0.2))
    figure.set_layout_engine("constrained", h_pad=0.1)  # no label is read as the next one's title
