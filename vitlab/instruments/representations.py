"""What named parts of a model give for images, and where in the image it is."""

from collections import defaultdict
from contextlib import AbstractContextManager
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from minivit.recording import record, runnable
from vitlab.instruments.grids import Grid, maps_of, rows_and_columns
from vitlab.instruments.layout import outside
from vitlab.instruments.running import Images, batches, entered, evaluating, expect
from vitlab.krylov.products import Operator

EXTRA = 8  # tokens besides the patches, at most, where nothing else is known


def named(model: nn.Module, names: tuple[str, ...]) -> None:
    """ValueError where no name is given; its message has one of the model's own as an example."""
    expect(names, f"names of modules, such as {list(runnable(model))[-1]!r}", "none")


def representations(
    model: nn.Module, images: Shaped[Tensor, "batch ..."], names: tuple[str, ...]
) -> dict[str, Float[Tensor, "batch ..."]]:
    """The outputs of named modules, without gradients."""
    named(model, names)
    with record(model, *names, detach=True) as seen, evaluating(model):
        model(images)
    for name, x in seen.items():
        floating = isinstance(x, Tensor) and x.is_floating_point()
        got = f"{x.dtype} {list(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
        fits = floating and x.shape[:1] == images.shape[:1]
        expect(fits, f"{name!r} to give one floating tensor [{len(images)}, ...]", got)
    return dict(seen)


def collected(
    model: nn.Module, images: Images, names: tuple[str, ...], read: Operator, batch_size: int
) -> dict[str, Tensor]:
    """What ``read`` makes of each named module's output, for all images, on the CPU."""
    parts: dict[str, list[Tensor]] = {}
    for batch in batches(images, batch_size)[1]:
        for name, x in representations(model, batch, names).items():
            parts.setdefault(name, []).append(read(x).cpu())
    return {name: torch.cat(rows) for name, rows in parts.items()}


class Places:
    """Where in the image a model's tokens and maps are, found by running it on one image."""

    def __init__(self, model: nn.Module, images: Tensor, grid: Grid | None = None) -> None:
        with evaluating(model), maps_of(model) as maps:
            model(images[:1])
        self.grids = maps if grid is None else [rows_and_columns(grid)]  # of tokens
        self.maps = {*maps, *self.grids, (images.shape[-2], images.shape[-1])}
        self.tokens, self.extra = outside(model, images)

    def split(
        self, x: Float[Tensor, "batch ..."]
    ) -> tuple[Float[Tensor, "batch extra dim"], Float[Tensor, "batch rows columns dim"]]:
        """Splits a layer's output in tokens without a place and a grid of those that have one.

        ``x`` are tokens ``[batch, tokens, dim]``, or a map ``[batch, dim, rows, columns]``, or, as
        in Swin, ``[batch, rows, columns, dim]``.
        """
        if x.ndim == 4 and tuple(x.shape[2:]) in self.maps:
            x = x.movedim(1, -1)
        if x.ndim == 4 and tuple(x.shape[1:3]) in self.maps:
            return x.flatten(1, 2)[:, :0], x
        if x.ndim == 3:
            known = x.shape[1] == self.tokens
            extra = self.extra if known else []
            for rows, columns in reversed(self.grids):
                if x.shape[1] - len(extra) == rows * columns:
                    here = [i for i in range(x.shape[1]) if i not in extra]
                    patches = x[:, here] if extra else x
                    return x[:, extra], patches.unflatten(1, (rows, columns))
            if self.grids and not known:  # such as a class token that joins in the last blocks
                rows, columns = self.grids[-1]
                if 0 < (first := x.shape[1] - rows * columns) <= EXTRA:
                    return x[:, :first], x[:, first:].unflatten(1, (rows, columns))
        what = "neither tokens of a known grid nor a map of a known size: give grid=(rows, columns)"
        raise ValueError(f"{list(x.shape)} is {what}; known are {sorted(self.maps)}")


class Means:
    """Means over images of a measure of patches, by name and place.

    The measure gives a sum over a batch of patches, ``[batch, rows, columns, dim]``.
    """

    def __init__(
        self, model: nn.Module, images: Images, of: Operator, grid: Grid | None, batch_size: int
    ) -> None:
        self.model, self.measure = model, of
        self.first, self.stream = batches(images, batch_size)
        self.places = Places(model, self.first, grid)
        # Sums over images, and how many images there are.
        self.sums: dict[str, dict[str, tuple[Tensor, int]]] = defaultdict(dict)

    def add(self, name: str, **tensors: Tensor) -> None:
        for place, x in tensors.items():
            total, count = self.sums[name].get(place, (0, 0))
            measured = self.measure(self.places.split(x)[1]).cpu()
            self.sums[name][place] = total + measured, count + len(x)

    def over(self, *hooks: AbstractContextManager[Any]) -> dict[str, dict[str, Tensor]]:
        """The means of what hooks add while the model runs on all images."""
        with evaluating(self.model), entered(hooks):
            for batch in self.stream:
                self.model(batch)
        return self.result()

    def result(self) -> dict[str, dict[str, Tensor]]:
        return {
            name: {place: total / count for place, (total, count) in sums.items()}
            for name, sums in self.sums.items()
        }
