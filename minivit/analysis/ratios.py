"""How much each sub-layer adds to what the residual connection carries past it."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from minivit.analysis.residuals import residuals
from minivit.analysis.running import batches, evaluating


@dataclass(frozen=True, eq=False)
class BranchRatios:
    """What :func:`branch_ratios` finds, for every sub-layer and token: means over pictures."""

    names: tuple[str, ...]  # of the sub-layers, in the order in which they run
    ratio: Tensor  # [sub-layers, tokens], norm of the branch over norm of the skip
    branch: Tensor  # [sub-layers, tokens], norm of the branch
    skip: Tensor  # [sub-layers, tokens], norm of the skip


def branch_ratios(
    model: nn.Module, images: Tensor | Iterable[Tensor], *, batch_size: int = 16
) -> BranchRatios:
    r"""Compares the two terms of every residual connection ``x + f(x)``, token by token.

    The ratio is :math:`\|f(x)\| / \|x\|`, the mean over pictures; Raghu et al. (2021), figure 8,
    show its inverse. Where it is small, the sub-layer changes little of the token, and what the
    token holds goes on along the skip.

    Args:
        model: Any with residual connections between tokens ``[batch, tokens, dim]``. They are found
            by :func:`~minivit.analysis.residuals.residuals`. It is used in its mode of evaluation,
            and comes back as it was.
        images: The model's input, ``[n, channels, height, width]``, or batches of such, all of one
            size. Memory is that of one batch.
        batch_size: Images at a time, where they are not in batches already. Default: 16.

    Returns:
        Float64 on the CPU. Tokens stand as the model has them.

    Raises:
        ValueError: No images, or of several sizes; no residual connections between tokens, or
            different numbers of tokens.
    """
    _, stream = batches(images, batch_size)
    total = torch.zeros((), dtype=torch.float64)
    count = 0
    for batch in stream:
        names: list[str] = []
        rows: list[Tensor] = []  # [3, tokens] for each: ratio, branch, skip, summed over the batch

        def keep(
            name: str, branch: Tensor, skip: Tensor, names: list = names, rows: list = rows
        ) -> None:
            if branch.ndim == 3:
                over, under = (t.double().norm(dim=-1) for t in (branch, skip))  # [b, tokens]
                names.append(name)
                rows.append(torch.stack([over / under, over, under]).sum(1).cpu())

        with evaluating(model), residuals(model, keep):
            model(batch)
        if not rows:
            raise ValueError(
                f"no residual connection between tokens is seen in {type(model).__name__}"
            )
        tokens = {name: row.shape[1] for name, row in zip(names, rows, strict=True)}
        if len(set(tokens.values())) > 1:
            raise ValueError(f"expected equally many tokens everywhere: got {tokens}")
        total = total + torch.stack(rows, 1)  # [3, sub-layers, tokens]
        count += len(batch)
    return BranchRatios(tuple(names), *(total / count))
