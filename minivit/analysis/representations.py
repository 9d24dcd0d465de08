"""What named parts of a model give for pictures, checked, and where on the picture it stands."""

from torch import Tensor, nn

from minivit.analysis.lattice import Grid, maps_of
from minivit.analysis.layout import outside
from minivit.analysis.running import evaluating, rows_and_columns
from minivit.recording import record

EXTRA = (
    8  # tokens beside the patches, at most, where nothing else is known: a class token, registers
)


def representations(model: nn.Module, images: Tensor, names: tuple[str, ...]) -> dict[str, Tensor]:
    """Runs a model in its mode of evaluation and keeps what its modules give.

    Args:
        model: Any module.
        images: What to call it with, ``[batch, ...]``.
        names: As for :func:`~minivit.recording.record`.

    Returns:
        By name, ``[batch, ...]`` each, without gradients. Of tokens those that come from no patch
        stand first, wherever the model has them.

    Raises:
        ValueError: A module gives no floating tensor with an entry for every picture.
        TypeError, LookupError, RuntimeError: As for :func:`~minivit.recording.record`.
    """
    with record(model, *names, detach=True) as seen, evaluating(model):
        model(images)
    for name, x in seen.items():
        if (
            not isinstance(x, Tensor)
            or not x.is_floating_point()
            or x.shape[:1] != images.shape[:1]
        ):
            said = f"{x.dtype} {list(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
            raise ValueError(
                f"expected {name!r} to give one floating tensor [{len(images)}, ...]: got {said}"
            )
    tokens, extra = outside(model, images)
    order = sorted(range(tokens), key=lambda i: i not in extra)
    if order == list(range(tokens)):
        return seen
    return {
        name: x[:, order] if x.ndim == 3 and x.shape[1] == tokens else x for name, x in seen.items()
    }


class PatchGrid(tuple[int, int]):
    """Rows and columns of patches, and how many tokens may stand beside them."""

    extra = EXTRA


def patch_grid(model: nn.Module, images: Tensor) -> Grid | None:
    """Rows and columns of patches: of what the model's last convolution gives, if it has one."""
    with evaluating(model), maps_of(model) as maps:
        model(images[:1])
    if not maps:
        return None
    grid = PatchGrid(maps[-1])
    grid.extra = max(EXTRA, len(outside(model, images)[1]))
    return grid


def places(x: Tensor, grid: Grid | None) -> tuple[Tensor, Tensor]:
    """Sorts what a layer gives by where on the picture it stands.

    Args:
        x: Tokens ``[batch, tokens, dim]``, those without a place first, or a feature map
            ``[batch, dim, rows, columns]``.
        grid: Rows and columns of patches, for tokens; a map has its own.

    Returns:
        The tokens without a place, ``[batch, extra, dim]``, and the others,
        ``[batch, rows, columns, dim]``.

    Raises:
        ValueError: Neither tokens nor a map, or tokens that are no such grid behind a few others.
    """
    if x.ndim == 4:
        return x.flatten(2).mT[:, :0], x.movedim(1, -1)
    if x.ndim != 3:
        raise ValueError(
            "expected tokens [batch, tokens, dim] or a map [batch, dim, rows, columns]: got "
            f"{list(x.shape)}"
        )
    if grid is None:
        raise ValueError(
            "no convolution runs in the model, so the grid of patches is not known: give "
            "grid=(rows, columns)"
        )
    rows, columns = rows_and_columns(grid)
    extra = x.shape[1] - rows * columns
    most = getattr(grid, "extra", EXTRA)
    if not 0 <= extra <= most:
        raise ValueError(
            f"{x.shape[1]} tokens are no {rows} x {columns} patches with up to {most} tokens "
            "beside them: give grid=(rows, columns)"
        )
    return x[:, :extra], x[:, extra:].unflatten(1, (rows, columns))
