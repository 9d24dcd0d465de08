"""The waves in what a model's parts read and give, and in the stream that they add to.

Two questions have two answers. Does a part, such as attention, smooth what it reads? That compares
its input with its output. Is the residual stream smoother after it? That compares the skip with
the sum, as Park & Kim (2022) do.
"""

from collections.abc import Callable, Hashable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from minivit.hooks import after, before
from minivit.recording import find, runnable, tensors_in
from vitlab.instruments.frequency import LogAmplitude, log_amplitude
from vitlab.instruments.grids import Grid, maps_of, rows_and_columns
from vitlab.instruments.layout import outside
from vitlab.instruments.residuals import residuals
from vitlab.instruments.running import Images, batches, evaluating


@dataclass(frozen=True, eq=False)
class Passage:
    """The waves in what a module reads, and in what it gives."""

    before: LogAmplitude
    after: LogAmplitude


@dataclass(frozen=True, eq=False)
class Addition:
    """The waves in both terms of a residual connection, and in their sum."""

    skip: LogAmplitude
    branch: LogAmplitude
    sum: LogAmplitude


def layer_frequencies(
    model: nn.Module,
    images: Images,
    *names: str,
    grid: Grid | None = None,
    batch_size: int = 16,
) -> dict[str, Passage]:
    """The log amplitudes before and after named modules, in the order these run.

    A module reads and gives tokens ``[batch, tokens, dim]``, of which those of patches count, or a
    map ``[batch, channels, rows, columns]``; of several tensors the first. The model runs in
    evaluation mode. Relative log amplitudes of maps of different sizes, as before and after a
    stride, have different meanings.

    Args:
        names: As for :func:`~minivit.recording.record`, such as ``"blocks.*.attention"``.
        grid: Rows and columns of patches. Default: found by watching the model run.

    Raises:
        LookupError: A name matches no module.
        ValueError: A module did not run, or what it reads or gives is on no known grid.
    """
    modules, weights = find(runnable(model), names)
    if weights or not modules:
        raise ValueError(f"expected names of modules: got {list(names)}")
    first, stream = batches(images, batch_size)
    to_map = _to_map(model, first, grid)
    sums = _Sums()

    def watch(stack: ExitStack, name: str, module: nn.Module) -> None:
        def begin(module: nn.Module, args: Any, kwargs: Any) -> None:
            sums.add((name, "before"), to_map(name, tensors_in((args, kwargs))[0]))

        def end(module: nn.Module, args: Any, output: Any) -> None:
            sums.add((name, "after"), to_map(name, tensors_in(output)[0]))

        stack.enter_context(before(module, begin))
        stack.enter_context(after(module, end))

    for batch in stream:
        with ExitStack() as stack:
            stack.enter_context(evaluating(model))
            for name, module in modules.items():
                watch(stack, name, module)
            model(batch)
    ran = list(dict.fromkeys(name for name, _ in sums.totals))
    if missing := sorted(modules.keys() - set(ran)):
        raise ValueError(f"the model did not run {missing}")
    return {name: Passage(sums.mean((name, "before")), sums.mean((name, "after"))) for name in ran}


def stream_frequencies(
    model: nn.Module, images: Images, *, grid: Grid | None = None, batch_size: int = 16
) -> dict[str, Addition]:
    """The log amplitudes of skip, branch and sum of every residual connection, in order.

    They have the names of the modules that compute the branches. Residual connections are found by
    :func:`~vitlab.instruments.residuals.residuals`; where a ReLU follows the sum, as in ResNets,
    none is seen: give the blocks to :func:`layer_frequencies`. Those after the pooling are left
    out.

    Raises:
        ValueError: There is no residual connection, or one on no known grid.
    """
    first, stream = batches(images, batch_size)
    to_map = _to_map(model, first, grid)
    sums = _Sums()

    def keep(name: str, branch: Tensor, skip: Tensor) -> None:
        if skip.ndim < 3:  # of what was pooled
            return
        for part, x in (("skip", skip), ("branch", branch), ("sum", skip + branch)):
            sums.add((name, part), to_map(name, x))

    for batch in stream:
        with evaluating(model), residuals(model, keep):
            model(batch)
    names = list(dict.fromkeys(name for name, _ in sums.totals))
    if not names:
        raise ValueError(f"no residual connection is seen in {type(model).__name__}")
    parts = ("skip", "branch", "sum")
    return {name: Addition(*(sums.mean((name, part)) for part in parts)) for name in names}


class _Sums:
    """Log amplitudes, summed over images."""

    def __init__(self) -> None:
        self.totals: dict[Any, Tensor] = {}
        self.counts: dict[Any, int] = {}

    def add(self, key: Hashable, maps: Float[Tensor, "batch channels rows columns"]) -> None:
        total = log_amplitude(maps).values.cpu() * len(maps)
        if key in self.totals and self.totals[key].shape != total.shape:
            was = list(self.totals[key].shape)
            raise ValueError(f"{key} has maps of different sizes: {was} and {list(total.shape)}")
        self.totals[key] = self.totals.get(key, 0) + total
        self.counts[key] = self.counts.get(key, 0) + len(maps)

    def mean(self, key: Hashable) -> LogAmplitude:
        return LogAmplitude(self.totals[key] / self.counts[key])


def _to_map(
    model: nn.Module, images: Tensor, grid: Grid | None
) -> Callable[[str, Tensor], Float[Tensor, "batch channels rows columns"]]:
    """Puts the tokens of a model on their grid, and leaves its maps as they are."""
    tokens, extra = outside(model, images)
    patches = [i for i in range(tokens) if i not in extra]
    if grid is not None:
        grids = [rows_and_columns(grid)]
    else:
        with evaluating(model), maps_of(model) as grids:
            model(images[:1])

    def to_map(name: str, x: Tensor) -> Tensor:
        if x.ndim == 4 and tuple(x.shape[2:]) in (*grids, tuple(images.shape[2:])):
            return x
        if x.ndim == 4 and tuple(x.shape[1:3]) in grids:  # [batch, rows, columns, channels]
            return x.movedim(-1, 1)
        if x.ndim == 3:
            x = x[:, patches] if x.shape[1] == tokens else x
            for rows, columns in reversed(grids):
                if rows * columns == x.shape[1]:
                    return x.mT.unflatten(2, (rows, columns))
        raise ValueError(
            f"{name!r} has {list(x.shape)}, neither tokens of a known grid nor a map: give "
            f"grid=(rows, columns); known are {sorted(set(grids))}"
        )

    return to_map
