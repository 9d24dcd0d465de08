"""Centred kernel alignment (CKA): how similar two representations of the same images are.

It is the cosine of the centred Gram matrices ``X X^T``, taken as vectors (Kornblith et al. 2019).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import torch
from jaxtyping import Float64, Shaped
from torch import Tensor, nn

from vitlab.boundary import checked
from vitlab.instruments.representations import representations
from vitlab.instruments.running import expect
from vitlab.krylov.products import Batch


@dataclass(frozen=True, eq=False)
class Similarity:
    """CKA of every layer in the rows with every layer in the columns."""

    values: Float64[Tensor, "rows columns"]
    rows: tuple[str, ...]  # names of layers
    columns: tuple[str, ...]


def linear_cka(x: Batch, y: Batch, *, debiased: bool = True) -> Float64[Tensor, ""]:
    """CKA of two matrices with the linear kernel; each row is one image, flattened.

    The biased one is far above 0 for unrelated matrices with more columns than rows.
    """
    sums = CKA(debiased=debiased)
    sums.update({"x": x}, {"y": y})
    return sums.result().values[0, 0]


def cka(
    model: nn.Module,
    images: Shaped[Tensor, "batch ..."] | Iterable[Tensor],
    *names: str,
    other: nn.Module | None = None,
    other_names: Sequence[str] | None = None,
) -> Similarity:
    """CKA of a model's layers with each other, or with another model's::

        cka(vit, images, "blocks.?", other=resnet).values    # [blocks, blocks]
        cka(vit, images.split(256), "blocks.?")              # in minibatches of 4 images or more

    ``other_names`` are the other model's layers, by default those of ``names``. A last batch of
    fewer images than 4 is left out.
    """
    sums = CKA()
    for batch in large(images):
        x = representations(model, batch, names)
        columns = names if other_names is None else tuple(other_names)
        same = other is None and other_names is None
        sums.update(x, None if same else representations(other or model, batch, columns))
    return sums.result()


def large(images: Tensor | Iterable[Tensor]) -> Iterator[Tensor]:
    """The batches for a CKA, without a last one that is left over and smaller than it needs."""
    batches = [images] if isinstance(images, Tensor) else images
    for i, (batch, following) in enumerate(pairwise(chain(batches, [None]))):
        if i == 0 or following is not None or len(batch) > 3:
            yield batch


class CKA:
    """CKA between layers, batch by batch, in constant memory, after Nguyen et al. (2021).

    Averaged over batches, the inner product of two centred Gram matrices needs an unbiased
    estimate: that of matrices without diagonals, centred differently (Székely & Rizzo 2014).
    """

    @checked
    def __init__(self, *, debiased: bool = True) -> None:
        self.debiased = debiased
        self._names: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        # Sums over batches: [rows, columns], [rows], [columns]
        self._between, self._rows, self._columns = torch.zeros(3, 1, dtype=torch.float64)

    @checked
    def update(self, x: Mapping[Any, Tensor], y: Mapping[Any, Tensor] | None = None) -> None:
        """Adds a batch: representations ``[batch, ...]`` by name, in the rows and in the columns.

        A batch has four images or more, or two, if biased.
        """
        sides = [x] if y is None else [x, y]
        self._names = tuple(x), tuple(sides[-1])
        counts = sorted({len(t) for side in sides for t in side.values()})
        least, n = 4 if self.debiased else 2, counts[0]
        fits, got = len(counts) == 1 and n >= least, " and ".join(map(str, counts))
        expect(fits, f"{least} images or more in every batch, as many for every layer", got)
        grams = [torch.stack([_centred_gram(t, self.debiased) for t in s.values()]) for s in sides]
        rows, columns = grams[0], grams[-1]  # [layers, n * n]
        scale = n * (n - 3) if self.debiased else (n - 1) ** 2
        self._between = self._between + rows @ columns.mT / scale
        self._rows = self._rows + rows.square().sum(1) / scale
        self._columns = self._columns + columns.square().sum(1) / scale

    def result(self) -> Similarity:
        """The CKA of all batches so far; ValueError where a layer gives the same for all images."""
        for names, sizes in zip(self._names, (self._rows, self._columns), strict=True):
            same = [n for n, size in zip(names, sizes.tolist(), strict=True) if not size > 0]
            got = f"nothing to compare: {same} give the same for all images, or all but one"
            expect(not same, "layers of finite numbers that differ", got)
        lengths = self._rows[:, None].sqrt() * self._columns.sqrt()
        return Similarity(self._between / lengths, *self._names)


def _centred_gram(x: Tensor, debiased: bool) -> Float64[Tensor, "batch_squared"]:
    """The centred Gram matrix of ``[batch, ...]``, flattened."""
    x = x.flatten(1).to(torch.promote_types(x.dtype, torch.float32))
    centred = x - x.mean(0)
    rounding = len(x) * torch.finfo(x.dtype).eps
    if centred.norm() <= rounding * x.norm():
        return x.new_zeros(len(x) ** 2, dtype=torch.float64).cpu()
    gram = (centred @ centred.mT).double().cpu()
    n, size = len(gram), gram.norm()
    if debiased:
        gram.fill_diagonal_(0)
        sums = gram.sum(0) / (n - 2)  # afterwards rows and columns sum to zero off the diagonal
        gram = gram - sums - sums[:, None] + sums.sum() / (n - 1)
        gram.fill_diagonal_(0)
    else:
        means = gram.mean(0)  # zero but for rounding
        gram = gram - means - means[:, None] + means.mean()
    if gram.norm() <= rounding * size:  # as where a single image differs
        gram.zero_()
    return gram.flatten()
