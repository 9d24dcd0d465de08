"""Heat maps over an image, how a training went, and which classes are taken for which others."""

from collections.abc import Sequence
from typing import Any

import matplotlib.style
import numpy as np
import torch
from jaxtyping import Float, Float64, Integer
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, PowerNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator, PercentFormatter
from torch import Tensor

from vitlab.instruments.grids import Grid, rows_and_columns
from vitlab.instruments.running import expect

NUMBERED, NAMED = 20, 60  # classes, at most, whose counts and whose names can be read
# Laid over a picture, from no weight, which leaves a fifth of its light, to the most, which glows.
_T = np.linspace(0, 1, 256)[:, None]
_GLOW, _OPAQUE = 0.35 * _T**2, 1 - (1 - 0.35 * _T**2) * (0.2 + 0.8 * _T)
LIT = ListedColormap(np.hstack([_GLOW / _OPAQUE * [1, 0.94, 0.78], _OPAQUE]))


def numbers(x: Tensor) -> Tensor:
    """A tensor to draw: detached, on the CPU, in float32 or wider."""
    return x.detach().cpu().to(torch.promote_types(x.dtype, torch.float32))


def heat(values: Tensor, grid: Grid, picture_size: Grid) -> Float64[np.ndarray, "height width"]:
    """Spreads one value per patch, in reading order, over the pixels of its patch."""
    rows, columns = rows_and_columns(grid)
    height, width = picture_size
    fits = values.numel() == rows * columns and not height % rows and not width % columns
    got = f"{values.numel()} values and {height} x {width} pixels"
    expect(fits, f"a value for each patch of a grid {rows} x {columns} that divides it", got)
    patch = np.ones((height // rows, width // columns))
    return np.kron(numbers(values).double().reshape(rows, columns).numpy(), patch)


def overlay(
    ax: Axes,
    picture: Float[Tensor, "channels height width"],
    values: Tensor,
    grid: Grid,
    *,
    query: int | None = None,
    vmax: float | None = None,
) -> None:
    """Draws an image lit by one value per patch, its root, so that small values are seen.

    Pixels are from 0 to 1. ``query`` is the index of a patch to frame, ``vmax`` the value that is
    lit fully, by default the largest. A grey image on black has colours as its ground.
    """
    height, width = picture.shape[-2:]
    pixels = numbers(picture).clamp(0, 1)
    pixels = pixels if len(pixels) == 3 else pixels.mean(0, keepdim=True)
    strongest = values.max().item() if vmax is None else vmax
    fractions = heat(values, grid, (height, width)) / (strongest or 1)
    if len(pixels) == 1 and pixels.median() < 0.1:
        ax.imshow(fractions, cmap="magma", norm=PowerNorm(0.5, 0, 1 / 0.85**2))
        ax.imshow(np.ones_like(fractions), cmap="gray", vmin=0, alpha=0.75 * pixels[0].numpy())
    else:
        ax.imshow(pixels.expand(3, -1, -1).permute(1, 2, 0).numpy())
        ax.imshow(fractions, cmap=LIT, norm=PowerNorm(0.5, 0, 1))
    if query is not None:
        expect(0 <= query < values.numel(), f"a query below {values.numel()}", query)
        row, column = divmod(query, grid[1])
        size = (width // grid[1], height // grid[0])
        corner = (column * size[0] - 0.5, row * size[1] - 0.5)
        frame = Rectangle(corner, *size, fill=False, edgecolor="#f0a868", linewidth=1.8)
        frame.set_path_effects([withStroke(linewidth=3.4, foreground="black")])
        ax.add_patch(frame)
    ax.set_axis_off()


def curve(lines: Sequence[dict[str, Any]]) -> Figure:
    """Draws loss and accuracy by epoch, from ``results.lines`` of a training."""
    epochs, held_out = [line["epoch"] for line in lines], [line["validation"] for line in lines]
    panels = {
        "loss": ([line["loss"] for line in lines], [-x["log_likelihood"] for x in held_out]),
        "accuracy": ([line["accuracy"] for line in lines], [x["accuracy"] for x in held_out]),
    }
    marker = "o" if len(lines) < 25 else None
    with matplotlib.style.context("vitlab.figures.book"):
        figure = Figure(layout="constrained")
        axes = figure.subplots(1, 2)
        for ax, (title, (training, validation)) in zip(axes, panels.items(), strict=True):
            ax.plot(epochs, training, marker=marker, markersize=4, label="training, augmented")
            ax.plot(epochs, validation, marker=marker, markersize=4, label="validation")
            ax.set(title=title, xlabel="epoch")
            ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes[0].set_ylim(bottom=0)
        axes[1].set_ylim(0, 1.02)
        axes[1].yaxis.set_major_formatter(PercentFormatter(1))
        axes[0].legend()
    return figure


def confusion_figure(matrix: Integer[Tensor, "classes classes"], classes: Sequence[str]) -> Figure:
    """Draws a confusion matrix: colours are fractions of the rows, numbers are images."""
    count = len(classes)
    fractions = matrix / matrix.sum(1, keepdim=True).clamp(min=1)
    side = min(12.0, max(4.5, 2 + (0.5 if count <= NUMBERED else 0.2) * count))
    with matplotlib.style.context("vitlab.figures.book"):
        figure = Figure(figsize=(side + 0.8, side), layout="constrained")
        ax = figure.subplots()
        shown = ax.imshow(fractions.numpy(), cmap="Blues", vmin=0, vmax=1)
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0, labelsize="small" if count <= NUMBERED else "xx-small")
        if count <= NAMED:
            names = [name.encode("utf-8", "backslashreplace").decode() for name in classes]
            plain: Any = {"parse_math": False}  # a name with dollars is a name
            tilted: Any = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
            ax.set_xticks(range(count), names, **tilted, **plain)
            ax.set_yticks(range(count), names, **plain)
        if count <= NUMBERED:
            centred: Any = {"ha": "center", "va": "center", "fontsize": "small"}
            for row, column in matrix.nonzero().tolist():
                colour = "white" if fractions[row, column] > 0.5 else "black"
                ax.text(column, row, str(matrix[row, column].item()), color=colour, **centred)
        ax.set(xlabel="taken for", ylabel="is")
        bar = figure.colorbar(shown, ax=ax, fraction=0.046, pad=0.03)
        bar.ax.yaxis.set_major_formatter(PercentFormatter(1))
        bar.set_label("of the class's images")
        bar.outline.set_visible(False)
    return figure
