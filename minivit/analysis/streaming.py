"""Centred kernel alignment (CKA) from one batch of pictures after the other, in flat memory.

Cortes et al. (2012) define it, and Kornblith et al. (2019) compare neural networks with it. Two
layers are alike if they agree on which pictures are alike. With a row for each of ``n`` pictures,
the Gram matrix ``K = X X^T``, ``[n, n]``, holds the products of all pairs of pictures. Centred,
the two layers' matrices are compared as vectors, by their cosine.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Similarity:
    """CKA of every layer with every other."""

    values: Tensor  # [rows, columns], float64
    rows: tuple[str, ...]  # names of layers
    columns: tuple[str, ...]


class CKA:
    """CKA between layers from one batch of pictures after the other; memory does not grow.

    The inner product of two centred Gram matrices is the Hilbert-Schmidt independence criterion
    (HSIC) of the two layers. Averaged over batches it must be estimated without bias, or what comes
    out depends on their size. ``HSIC_1`` of Song et al. (2012) is such an estimate, and Nguyen et
    al. (2021) take it for CKA in minibatches. Székely & Rizzo (2014) show that it is itself an
    inner product, of matrices centred in another way, without their diagonals: so no square
    root is of a negative number, however small the batches, and no value above 1.

    Args:
        debiased: Whether to use ``HSIC_1``. Otherwise the estimate of Gretton et al. (2005) is
            averaged, whose bias is the larger the smaller the batches.
    """

    def __init__(self, *, debiased: bool = True) -> None:
        self.debiased = debiased
        self._names: tuple[tuple[str, ...], tuple[str, ...]] | None = None
        # Sums over batches: [rows, columns], [rows], [columns]
        self._between, self._rows, self._columns = torch.zeros(3, 1, dtype=torch.float64)

    def update(self, x: Mapping[str, Tensor], y: Mapping[str, Tensor] | None = None) -> None:
        """Adds a batch: what layers give for the same pictures, ``[n, ...]`` each, by name.

        Args:
            x: The layers that become rows.
            y: Those that become columns. Default: the same.

        Raises:
            ValueError: No layers, other layers than in the batches before, no row for each picture,
                fewer than four pictures (two, if biased), not as many in each layer, or numbers
                that are not finite.
        """
        sides = [x] if y is None else [x, y]
        names = tuple(x), tuple(sides[-1])
        if not all(names) or names != (self._names or names):
            raise ValueError(f"expected the same layers in every batch, one or more: got {names}")
        for name, t in chain.from_iterable(side.items() for side in sides):
            if t.ndim < 2:
                raise ValueError(
                    f"expected {name!r} [n, ...], a row a picture: got {list(t.shape)}"
                )
        counts = {len(t) for side in sides for t in side.values()}
        least, n = 4 if self.debiased else 2, min(counts)
        if len(counts) > 1 or n < least:
            raise ValueError(
                f"expected {least} pictures or more in every batch, as many for every layer: got "
                f"{' and '.join(map(str, sorted(counts)))}"
            )
        grams = [
            torch.stack([_centred_gram(t, self.debiased, name) for name, t in side.items()])
            for side in sides
        ]
        rows, columns = grams[0], grams[-1]  # [layers, n * n]
        scale = n * (n - 3) if self.debiased else (n - 1) ** 2
        self._names = names
        self._between = self._between + rows @ columns.mT / scale
        self._rows = self._rows + rows.square().sum(1) / scale
        self._columns = self._columns + columns.square().sum(1) / scale

    def result(self) -> Similarity:
        """The CKA of what was seen so far.

        Raises:
            ValueError: There was no batch yet, or a layer gives the same for all pictures or, where
                debiased, for all but one, which tells nothing of pairs.
        """
        if self._names is None:
            raise ValueError("expected a batch of pictures or more: got none")
        for names, sizes in zip(self._names, (self._rows, self._columns), strict=True):
            if same := [n for n, size in zip(names, sizes.tolist(), strict=True) if not size]:
                raise ValueError(
                    f"nothing to compare: {same} give the same for all pictures, or all but one"
                )
        lengths = self._rows[:, None].sqrt() * self._columns.sqrt()
        return Similarity(self._between / lengths, *self._names)


def _centred_gram(x: Tensor, debiased: bool, name: str) -> Tensor:
    """The Gram matrix of ``[n, ...]``, centred and flattened: ``[n * n]``, float64."""
    x = x.flatten(1).to(torch.promote_types(x.dtype, torch.float32))
    if not x.isfinite().all():
        raise ValueError(f"expected finite numbers: {name!r} has others")
    centred = x - x.mean(0)
    rounding = len(x) * torch.finfo(x.dtype).eps
    if centred.norm() <= rounding * x.norm():
        return x.new_zeros(len(x) ** 2, dtype=torch.float64).cpu()
    gram = (centred @ centred.mT).double().cpu()
    n, size = len(gram), gram.norm()
    if debiased:
        gram.fill_diagonal_(0)
        sums = gram.sum(0) / (n - 2)  # off the diagonal rows and columns then sum to zero
        gram = gram - sums - sums[:, None] + sums.sum() / (n - 1)
        gram.fill_diagonal_(0)
    else:
        means = gram.mean(0)  # zero but for rounding
        gram = gram - means - means[:, None] + means.mean()
    if gram.norm() <= rounding * size:  # as where one picture alone differs
        gram.zero_()
    return gram.flatten()
