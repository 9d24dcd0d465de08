"""Norms of tokens through the depth of a model, and those that stand out: artefacts, registers."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float64
from torch import Tensor, nn

from vitlab.instruments.blocks import row_of_blocks
from vitlab.instruments.grids import Grid
from vitlab.instruments.representations import by_position, patch_grid, representations
from vitlab.instruments.running import Images, batches, expect


@dataclass(frozen=True, eq=False)
class TokenNorms:
    """Euclidean norms of the tokens that layers give."""

    names: tuple[str, ...]  # of the layers, in the order they run
    patches: Float64[Tensor, "names batch rows columns"]
    extra: Float64[Tensor, "names batch extra"]  # class token, registers
    factor: float  # how many medians make an outlier

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
    model: nn.Module,
    images: Images,
    *names: str,
    grid: Grid | None = None,
    factor: float = 3,
    batch_size: int = 16,
) -> TokenNorms:
    """Measures the norm of every token after every block, and which patches stand out by theirs.

    Darcet et al. (2024) find in large models a few patches, about 2 %, with roughly ten times the
    norm of the others. Here it is more than ``factor`` times the median of all patches at that
    depth; 3 is midway between 1 and 10 on a logarithmic scale.
    """
    first, stream = batches(images, batch_size)
    names = names or tuple(row_of_blocks(model, first))
    grid = grid or patch_grid(model, first)
    norms: dict[str, list[list[Tensor]]] = {}  # of others and of patches, by batch
    for batch in stream:
        for name, x in representations(model, batch, names).items():
            row = [tokens.double().norm(dim=-1).cpu() for tokens in by_position(x, grid)]
            norms.setdefault(name, []).append(row)
    shapes = {name: [n for x in rows[0] for n in x.shape[1:]] for name, rows in norms.items()}
    alike = len(set(map(tuple, shapes.values()))) == 1
    expect(alike, "the same tokens in all layers", f"[extra, rows, columns] {shapes}")
    extra, patches = (
        torch.stack([torch.cat([row[i] for row in rows]) for rows in norms.values()])
        for i in (0, 1)
    )
    return TokenNorms(tuple(norms), patches, extra, factor)
