"""What the instruments should find, computed with torch alone: spies, hooks and a few formulas.

Nothing here uses ``minivit``, nor its way of listening: torch's softmax is replaced by one that
keeps what it gives, and modules are given forward hooks.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn


@contextmanager
def softmaxes(images: int, edit: Callable[[int, Tensor], Tensor] | None = None) -> Iterator[list]:
    """Collects every softmax over the last of three axes or more, ``[images, heads, ...]``.

    ``edit`` gets the number of a softmax and its result, and what it returns goes on.
    """
    seen: list[Tensor] = []

    def spied(softmax: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def spy(x: Tensor, dim: int, *args: Any, **kwargs: Any) -> Tensor:
            weights = softmax(x, dim, *args, **kwargs)
            if x.ndim < 3 or dim not in (-1, x.ndim - 1):
                return weights
            weights = edit(len(seen), weights) if edit else weights
            if weights.requires_grad:
                weights.retain_grad()
            seen.append(weights)
            return weights

        return spy

    def attention(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0, is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False) -> Tensor:  # fmt: skip
        assert not (dropout_p or is_causal or enable_gqa)
        scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attn_mask, -math.inf)
        elif attn_mask is not None:
            scores = scores + attn_mask
        return scores.softmax(-1) @ v

    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # it calls nothing of these
    try:
        with pytest.MonkeyPatch.context() as patch:
            for owner in torch, torch.Tensor:
                patch.setattr(owner, "softmax", spied(owner.softmax))
            patch.setattr(F, "scaled_dot_product_attention", attention)
            yield seen
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


@contextmanager
def hooked(model: nn.Module, names: list[str], hook: Callable[..., Any]) -> Iterator[None]:
    """Calls ``hook(name, input, output)`` after the modules; what it returns is their output."""

    def after(name: str) -> Callable[..., Any]:
        return lambda module, args, kwargs, output: hook(name, [*args, *kwargs.values()][0], output)

    with ExitStack() as stack:
        for name in names:
            module = model.get_submodule(name)
            stack.callback(module.register_forward_hook(after(name), with_kwargs=True).remove)
        yield


def ends(model: nn.Module, images: Tensor, names: list[str]) -> dict[str, tuple[Tensor, Tensor]]:
    """Input and output of modules by name; of several tensors the first."""
    found: dict[str, tuple[Tensor, Tensor]] = {}
    keep = lambda name, x, y: found.update({name: (x.clone(), first(y).clone())})  # noqa: E731
    with hooked(model, names, keep):
        model(images)
    return found


def first(output: Any) -> Tensor:
    return output if isinstance(output, Tensor) else output[0]


def zeroed(name: str, x: Tensor, output: Any) -> Any:
    """As a hook: zeros in place of what a module gives."""
    return placed(torch.zeros_like(first(output)))(name, x, output)


def placed(new: Tensor) -> Callable[..., Any]:
    """As a hook: a tensor in place of the first that a module gives."""
    return lambda name, x, output: new if isinstance(output, Tensor) else (new, *output[1:])


def distances(grid: tuple[int, int], step: tuple[float, float]) -> Tensor:
    """Between the centres of patches, in reading order."""
    places = [(step[0] * (i // grid[1]), step[1] * (i % grid[1])) for i in range(math.prod(grid))]
    return torch.tensor([[math.dist(a, b) for b in places] for a in places]).double()


def mean_distance(weights: Tensor, where: range, apart: Tensor) -> Tensor:
    """``[heads]``, of ``[batch, heads, tokens, tokens]``."""
    between = weights[:, :, where][..., where].double()
    return ((between * apart).sum(-1) / between.sum(-1)).mean((0, 2))


def spread(weights: Tensor, side: int, window: int, shift: int) -> Tensor:
    """``[images, heads, tokens, tokens]`` of weights in shifted windows of a square grid."""
    padded = torch.full([-(-side // window) * window] * 2, -1)
    padded[:side, :side] = torch.arange(side**2).view(side, side)
    rolled = padded.roll((-shift, -shift), (0, 1))
    windows = [piece.flatten() for rows in rolled.split(window) for piece in rows.split(window, 1)]
    per_image = weights.unflatten(0, (-1, len(windows)))
    full = torch.zeros(len(per_image), weights.shape[1], side**2, side**2)
    for i, tokens in enumerate(windows):
        real = tokens >= 0
        inside = tokens[real]
        full[:, :, inside[:, None], inside] = per_image[:, i][..., real, :][..., real]
    return full


def merged(rows: Tensor, count: int) -> Tensor:
    """``[images, count, more]``: the mean of each 2 x 2 tokens of a square grid, if not as many."""
    if rows.shape[1] == count:
        return rows
    half = math.isqrt(count)
    return rows.unflatten(1, (half, 2, half, 2)).mean((2, 4)).flatten(1, 2)


def rolled_out(weights: list[Tensor]) -> list[Tensor]:
    """Products of (A + I) / 2, a mean over heads, from the first block on."""
    products, rows = [], torch.eye(weights[0].shape[-1]).double()[None]
    for one in weights:
        mixed = one.double().mean(1) + torch.eye(one.shape[-1])
        rows = mixed / mixed.sum(-1, keepdim=True) @ merged(rows, one.shape[-1])
        products.append(rows)
    return products


def relevances(weights: list[Tensor]) -> list[Tensor]:
    """R + mean of (A · dA)⁺ R from R = I, of weights whose gradients autograd has left on them."""
    total = torch.eye(weights[0].shape[-1]).double().expand(len(weights[0]), -1, -1)
    totals = []
    for one in weights:
        total = merged(total, one.shape[-1])
        total = total + (one.detach() * one.grad).double().clamp(min=0).mean(1) @ total
        totals.append(total)
    return totals


def log_amplitudes(maps: Tensor) -> Tensor:
    """``[rows, columns]``: mean log of |FFT| + 1e-6, over images and channels, by numpy."""
    waves = np.abs(np.fft.fft2(maps.double().numpy()))
    return torch.from_numpy(np.log(waves + 1e-6).mean((0, 1)))
