r"""What LayerNorm forgets: all inputs that it maps to one output.

From :math:`y = \gamma z + \beta` comes :math:`z`, and :math:`x = a z + c` with two numbers
missing. The shift :math:`c` is gone; the scale :math:`a = \sqrt{v + \epsilon}` leaves a trace
where :math:`\epsilon > 0`: the mean square of :math:`z` is :math:`r = v / (v + \epsilon) < 1`.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from minivit.mixer import TokenNorm
from minivit.shapes import Tokens
from vitlab.calls import expect
from vitlab.inversion.solvers import rank_of


@dataclass(frozen=True, eq=False)
class Fibre:
    """The inputs ``scale * direction + shift``, which LayerNorm all maps to one output."""

    direction: Float[Tensor, "..."]  # z, shaped like y, with mean 0 along the norm's axis
    scale: Float[Tensor, "..."]  # a, of size 1 along that axis; NaN for eps = 0: any positive one
    scale_error: Float[Tensor, "..."]  # roughly its largest relative error; useless above 1
    dimension: int  # how many numbers each token (each channel, over tokens) has lost

    def at(self, shift: Tensor | float = 0.0, scale: Tensor | float | None = None) -> Tensor:
        """A member of the fibre, with the recovered scale or another, inexact for ``eps > 0``."""
        return (self.scale if scale is None else scale) * self.direction + shift


def fibre(norm: nn.LayerNorm, y: Float[Tensor, "..."]) -> Fibre:
    """All inputs that a LayerNorm over features, or a ``TokenNorm`` over tokens, maps to ``y``.

    The trace of the scale is the small difference ``1 - r``, about ``eps / v``; ``scale_error``
    says how far rounding hides it.
    """
    if not isinstance(norm, nn.LayerNorm) or len(norm.normalized_shape) != 1:
        raise TypeError(f"expected a LayerNorm over one axis: got {norm}")
    y = y.mT if (over_tokens := isinstance(norm, TokenNorm)) else y
    u = torch.finfo(y.dtype).eps
    wide = y.detach().double()
    gamma = wide.new_ones(1) if norm.weight is None else norm.weight.detach().double()
    beta = wide.new_zeros(1) if norm.bias is None else norm.bias.detach().double()
    expect(gamma.all(), "a LayerNorm without zeros in gamma, which lose more", "some")
    z = (wide - beta) / gamma
    # How far rounding may have moved every z: that of y, and that of LayerNorm's own arithmetic.
    blur = u * (wide.abs() / gamma.abs() + (beta / gamma).abs() + z.abs())
    r = z.square().mean(-1, keepdim=True)
    blur_r = 2 * (z.abs() * blur).mean(-1, keepdim=True)
    least = 0 if norm.eps else 0.99 - blur_r
    centred = (z.mean(-1).abs() <= 0.01 + blur.sum(-1)).all()
    fits = centred and ((least <= r) & (r <= 1.01)).all()
    expect(fits, "an output of this LayerNorm", "one that no input gives: check gamma and beta")
    if norm.eps:
        gap = (1 - r).clamp(min=torch.finfo(torch.float64).tiny)
        error = blur_r / (2 * gap)
        scale = (norm.eps / torch.maximum(gap, blur_r)).sqrt()
    else:
        scale, error = torch.full_like(r, torch.nan), torch.full_like(r, torch.inf)
    parts = [part.mT if over_tokens else part for part in (z, scale, error)]
    direction, scale, error = (part.to(y.dtype) for part in parts)
    return Fibre(direction, scale, error, 1 if norm.eps else 2)


def meeting(
    fibres: Fibre, weight: Float[Tensor, "dim n"], offset: Float[Tensor, "*tokens dim"]
) -> tuple[Tokens, Float[Tensor, "batch tokens"]]:
    """Finds the token of each fibre, over features, that a patch embedding could have given.

    Gives it, and the condition of the two unknowns: 1e15 where no point is alone.

    The tokens ``W q + t``, with ``W`` its ``projection.weight.flatten(1)`` and ``t``, the offset,
    its bias plus the position, fill all but ``dim - rank`` dimensions. Projected on these,
    ``a z + c 1 = W q + t`` leaves two unknowns, badly determined where ``t`` is small.
    """
    z = fibres.direction.double()
    ones = torch.ones_like(z)
    weight, offset = weight.detach().double(), offset.detach().double()
    u, values, _ = torch.linalg.svd(weight)
    rank = rank_of(values, weight.shape)
    outside = u[:, rank:]  # [dim, dim - rank], orthonormal, orthogonal to all W q
    if outside.shape[1] < 2:  # the unknowns: scale and shift
        embedding = f"tokens of {len(weight)} numbers with an embedding of rank {rank}"
        raise ValueError(f"{embedding} leave {outside.shape[1]} dimensions, and two are needed")
    unknowns = torch.stack([z @ outside, ones @ outside], -1)  # [batch, tokens, dim - rank, 2]
    goal = (offset @ outside).expand(unknowns.shape[:-1])
    solution = torch.linalg.pinv(unknowns, rtol=0.0) @ goal[..., None]  # [batch, tokens, 2, 1]
    tokens = solution[..., 0, :] * z + solution[..., 1, :]
    condition = z.norm(dim=-1) / torch.linalg.svdvals(unknowns)[..., -1]
    return tokens.to(fibres.direction.dtype), condition
