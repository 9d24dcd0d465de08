"""How much each sub-layer adds to the residual stream."""

from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from vitlab.instruments.residuals import residuals
from vitlab.instruments.running import Images, batches, evaluating, expect


@dataclass(frozen=True, eq=False)
class BranchRatios:
    """Norms of both terms of every residual connection, by token: means over images."""

    names: tuple[str, ...]  # of the sub-layers, in the order they run
    ratio: Float64[Tensor, "branches tokens"]  # norm of the branch over norm of the skip
    branch: Float64[Tensor, "branches tokens"]  # norm of the branch
    skip: Float64[Tensor, "branches tokens"]  # norm of the skip


def branch_ratios(model: nn.Module, images: Images, *, batch_size: int = 16) -> BranchRatios:
    r"""Compares the two terms of every residual connection ``x + f(x)``, token by token.

    The ratio is :math:`\|f(x)\| / \|x\|`, whose inverse is in Raghu et al. (2021), figure 8. Where
    it is small, the sub-layer changes the token little. Residual connections are found by
    :func:`~vitlab.instruments.residuals.residuals`; ValueError where none is between tokens, or
    where blocks have different numbers of tokens.
    """
    total = torch.zeros((), dtype=torch.float64)
    count = 0
    rows: list[tuple[str, Tensor]] = []  # [3, tokens] of each sub-layer, summed over the batch

    def keep(name: str, branch: Tensor, skip: Tensor) -> None:
        if branch.ndim == 3:
            over, under = (t.double().norm(dim=-1) for t in (branch, skip))  # [b, tokens]
            rows.append((name, torch.stack([over / under, over, under]).sum(1).cpu()))

    for batch in batches(images, batch_size)[1]:
        rows.clear()
        with evaluating(model), residuals(model, keep):
            model(batch)
        if not rows:
            raise ValueError(
                f"no residual connection between tokens is seen in {type(model).__name__}"
            )
        tokens = {name: row.shape[1] for name, row in rows}
        expect(len(set(tokens.values())) == 1, "equally many tokens everywhere", tokens)
        total = total + torch.stack([row for _, row in rows], 1)  # [3, sub-layers, tokens]
        count += len(batch)
    return BranchRatios(tuple(name for name, _ in rows), *(total / count))
