"""Checks of what a reader gives to :func:`~vitlab.inversion.optimise.invert`."""

from torch import Tensor, nn

from vitlab.calls import refuse_training

OPTIMISERS = ("gd", "adam", "lbfgs", "gauss-newton")


def check_options(
    model: nn.Module,
    given: dict[str, Tensor | None],
    optimizer: str,
    steps: int,
    step_size: float | None,
    blur: float | None,
    shift: float,
) -> None:
    """Raises what ``invert`` says that it raises, but for what only the activation shows."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"expected an nn.Module: got {type(model).__name__}")
    refuse_training(model)
    if (given["image"] is None) == (given["target"] is None):
        raise ValueError("give an image to invert or a target activation, and not both")
    if given["target"] is not None and given["start"] is None:
        raise ValueError("with a target give a start too: it says what an input is like")
    for name, tensor in given.items():
        if tensor is None:
            continue
        if not isinstance(tensor, Tensor) or not tensor.is_floating_point():
            kind = tensor.dtype if isinstance(tensor, Tensor) else type(tensor).__name__
            raise TypeError(f"expected {name} to be a tensor of floating numbers: got {kind}")
        if tensor.ndim < 2 or not tensor.numel() or not tensor.isfinite().all():
            raise ValueError(
                f"expected {name} [batch, ...] of finite numbers, one entry or more: got "
                f"{list(tensor.shape)}" + ", not all finite" * (not tensor.isfinite().all())
            )
    image, start = given["image"], given["start"]
    if image is not None and start is not None:
        expected = list(image.shape), image.dtype, image.device
        got = list(start.shape), start.dtype, start.device
        if got != expected:
            raise ValueError(f"expected a start like the image, {expected}: got {got}")
    if optimizer not in OPTIMISERS:
        raise ValueError(f"the optimizer is one of {', '.join(OPTIMISERS)}: got {optimizer!r}")
    if type(steps) is not int or steps < 1:
        raise ValueError(f"steps is a positive integer: got {steps!r}")
    if step_size is not None and (optimizer not in ("gd", "adam") or not step_size > 0):
        raise ValueError(f"step_size is positive, of gd and adam: got {step_size}, {optimizer!r}")
    like = start if image is None else image
    if blur is not None and (
        optimizer != "gd" or not blur > 0 or (like is not None and like.ndim != 4)
    ):
        raise ValueError(f"blur is positive, of gd on images: got {blur}, {optimizer!r}")
    if not shift > 0:
        raise ValueError(f"shift is positive: got {shift}")
