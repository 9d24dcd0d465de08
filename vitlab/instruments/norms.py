"""Norms of tokens through the depth of a model, and those that stand out: artefacts, registers."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float64
from torch import Tensor, nn

from vitlab.instruments.blocks import row_of_blocks
from vitlab.instruments.grids import Grid
from vitlab.instruments.representations import Places, representations
from vitlab.instruments.running import Images, batches


@dataclass(frozen=True, eq=False)
class TokenNorms:
    """Euclidean norms of the tokens that layers give."""

    names: tuple[str, ...]  # of the layers, in the order they run
    patches: Float64[Tensor, "names batch rows columns"]
    extra: Float64[Tensor, "names batch extra"]  # class token, registers
    factor = 3  # how many medians make an outlier

    @property
    def ratio(self) -> Float64[Tensor, "names batch rows columns"]:
        """Norms of patches over the layer's median, of the patches of all images."""
        return self.patches / self.patches.flatten(1).median(1).values[:, None, None, None]

    @property
    def outliers(self) -> Bool[Tensor, "names batch rows columns"]:
        """Patches whose norm is more than ``factor`` medians."""
        return self.ratio > self.factor

    @property
    def fraction(self) -> Float64[Tensor, "names"]:
        """Of outliers among the patches, 0 throughout in a model without high-norm tokens."""
        return self.outliers.double().mean((1, 2, 3))

    @property
    def largest(self) -> Float64[Tensor, "names"]:
        """How far the largest stands out in each layer, as a ratio."""
        return self.ratio.amax((1, 2, 3))

    @property
    def places(self) -> Float64[Tensor, "names rows columns"]:
        """In how many of the images, as a fraction, the patch at each position is an outlier."""
        return self.outliers.double().mean(1)

    @property
    def first(self) -> str | None:
        """The first layer with an outlier, if there is one."""
        return next((n for n, x in zip(self.names, self.outliers, strict=True) if x.any()), None)


def token_norms(
    model: nn.Module, images: Images, *, grid: Grid | None = None, batch_size: int = 16
) -> TokenNorms:
    """Measures the norm of every token after every block, and which patches stand out by theirs.

    Darcet et al. (2024) find in large models a few patches, about 2 %, with roughly ten times the
    norm of the others. Here it is more than 3 times the median of all patches at that depth, midway
    between 1 and 10 on a logarithmic scale.
    """
    first, stream = batches(images, batch_size)
    names = tuple(row_of_blocks(model, first))
    places = Places(model, first, grid)
    norms: tuple[list[Tensor], list[Tensor]] = [], []  # of others and of patches, by batch
    for batch in stream:
        tokens = [places.split(x) for x in representations(model, batch, names).values()]
        for by_batch, kind in zip(norms, zip(*tokens, strict=True), strict=True):
            by_batch.append(torch.stack([x.double().norm(dim=-1).cpu() for x in kind]))
    extra, patches = (torch.cat(by_batch, 1) for by_batch in norms)
    return TokenNorms(names, patches, extra)
