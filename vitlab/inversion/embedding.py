"""The patch embedding inverted: what it keeps of a patch, what it loses, and the way back.

A patch of ``n`` numbers becomes a token ``W x + b`` of ``dim``. With the singular value
decomposition ``W = U S V^T``, the token determines ``V^T x`` exactly and nothing orthogonal to it.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from minivit.patches import patchify, unpatchify
from minivit.shapes import Size
from minivit.vit import PatchEmbedding
from vitlab.inversion.solvers import rank_of


@dataclass(frozen=True, eq=False)
class PatchPrior:
    """What patches look like: a Gaussian with this mean and covariance."""

    mean: Float[Tensor, " n"]
    covariance: Float[Tensor, "n n"]

    @classmethod
    def of(
        cls, images: Float[Tensor, "batch channels height width"], patch_size: int | tuple[int, int]
    ) -> "PatchPrior":
        """The mean and covariance of all patches, two or more, of some images."""
        patches = patchify(images, patch_size).flatten(0, 1).double()  # [batch * patches, n]
        return cls(patches.mean(0), patches.mT.cov())


class EmbeddingInverse:
    """The exact way back through a linear patch embedding, by its singular value decomposition.

    Computed in float64, whatever the embedding's dtype. Singular values up to the rounding error of
    their computation, ``max(dim, n)`` units in the last place of the largest, count as zero.
    """

    values: Float[Tensor, " k"]  # singular values, descending; k is the smaller of dim and n
    rank: int  # how many numbers of a patch a token determines
    seen: Float[Tensor, "rank n"]  # V^T, an orthonormal basis of what tokens determine
    unseen: Float[Tensor, "null n"]  # an orthonormal basis of the null space, what they lose

    def __init__(self, embedding: PatchEmbedding) -> None:
        if not isinstance(embedding, PatchEmbedding):
            raise TypeError(f"expected a linear PatchEmbedding: got {type(embedding).__name__}")
        projection = embedding.projection
        weight = projection.weight.detach().flatten(1).double()  # [d, n]
        self.patch_size: Size = projection.kernel_size  # type: ignore[assignment]
        self.bias = weight.new_zeros(len(weight))
        if projection.bias is not None:
            self.bias = projection.bias.detach().double()
        u, self.values, vt = torch.linalg.svd(weight)
        self.rank = rank_of(self.values, weight.shape)
        self.seen, self.unseen = vt[: self.rank], vt[self.rank :]
        self._read = u[:, : self.rank] / self.values[: self.rank]  # [d, rank]

    @property
    def condition(self) -> float:
        """The largest singular value over the smallest that is not zero."""
        return (self.values[0] / self.values[self.rank - 1]).item()

    def patches(
        self, tokens: Float[Tensor, "... dim"], prior: PatchPrior | None = None
    ) -> Float[Tensor, "... n"]:
        """The patches that the embedding maps to these tokens, with no positions added.

        What the tokens determine is exact. The rest is zero without a prior: the pseudo-inverse.
        With one it is the prior's conditional mean given what is known, which is both the most
        probable patch and the linear estimate of least mean square error.
        """
        known = (tokens.double() - self.bias) @ self._read  # V^T x: [..., rank]
        patches = known @ self.seen
        if prior is not None:
            mean = prior.mean.double()
            covariance = prior.covariance.double()
            across = self.unseen @ covariance @ self.seen.mT  # [n - rank, rank]
            within = torch.linalg.pinv(self.seen @ covariance @ self.seen.mT, hermitian=True)
            surprise = known - self.seen @ mean
            patches = patches + (self.unseen @ mean + surprise @ (across @ within).mT) @ self.unseen
        return patches.to(tokens.dtype)

    def images(
        self,
        tokens: Float[Tensor, "batch patches dim"],
        grid: tuple[int, int],
        prior: PatchPrior | None = None,
    ) -> Float[Tensor, "batch channels height width"]:
        """The images of a grid (rows, columns) of patches with these tokens."""
        return unpatchify(self.patches(tokens, prior), grid, self.patch_size)
