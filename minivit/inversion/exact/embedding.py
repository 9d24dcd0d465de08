"""The patch embedding turned around: what of a patch it keeps, what it loses, and the way back.

A patch of ``n`` numbers becomes a token ``W x + b`` of ``d``. With ``W = U S V^T``, its singular
value decomposition, the token tells ``V^T x`` exactly and nothing of what is orthogonal to it.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from minivit.inversion.exact.solvers import rank_of
from minivit.networks.patches import patchify, unpatchify
from minivit.networks.shapes import Size
from minivit.networks.vit import PatchEmbedding


@dataclass(frozen=True, eq=False)
class PatchPrior:
    """What patches look like: a Gaussian with this mean and covariance."""

    mean: Tensor  # [n]
    covariance: Tensor  # [n, n]

    @classmethod
    def of(cls, images: Tensor, patch_size: int | tuple[int, int]) -> "PatchPrior":
        """Takes mean and covariance of all patches of images ``[batch, channels, h, w]``.

        Raises:
            ValueError: Fewer than two patches.
        """
        patches = patchify(images, patch_size).flatten(0, 1).double()  # [batch * patches, n]
        if len(patches) < 2:
            raise ValueError(f"a covariance needs two patches or more: got {len(patches)}")
        return cls(patches.mean(0), patches.mT.cov())


class EmbeddingInverse:
    """The exact way back through a patch embedding, by its singular value decomposition.

    Computed in float64, whatever the embedding's dtype.

    Args:
        embedding: A linear patch embedding. Singular values up to the rounding error of their
            computation, ``max(d, n)`` units in the last place of the largest, count as zero.

    Raises:
        TypeError: Another stem.
    """

    values: Tensor  # singular values, descending: [min(d, n)]
    rank: int  # how many numbers of a patch a token tells
    seen: Tensor  # V^T, an orthonormal basis of what tokens tell: [rank, n]
    unseen: Tensor  # one of the null space, what they do not tell: [n - rank, n]

    def __init__(self, embedding: PatchEmbedding) -> None:
        if not isinstance(embedding, PatchEmbedding):
            raise TypeError(
                f"expected a minivit PatchEmbedding, a linear one: got {type(embedding).__name__}"
            )
        projection = embedding.projection
        weight = projection.weight.detach().flatten(1).double()  # [d, n]
        self.patch_size: Size = embedding.projection.kernel_size  # type: ignore[assignment]
        self.bias = weight.new_zeros(len(weight))
        if projection.bias is not None:
            self.bias = projection.bias.detach().double()
        u, self.values, vt = torch.linalg.svd(weight)
        self.rank = rank_of(self.values, weight.shape)
        self.seen, self.unseen = vt[: self.rank], vt[self.rank :]
        self._read = u[:, : self.rank] / self.values[: self.rank]  # [d, rank]

    @property
    def condition(self) -> float:
        """Largest over smallest singular value that is not zero."""
        return (self.values[0] / self.values[self.rank - 1]).item()

    def patches(self, tokens: Tensor, prior: PatchPrior | None = None) -> Tensor:
        """Gives the patches that an embedding maps to these tokens, ``[..., d]`` to ``[..., n]``.

        What the tokens tell of a patch is kept exactly. What they do not tell is zero without a
        prior: the pseudo-inverse. With one it is the prior's conditional mean given the rest, which
        is both the most probable patch and the best linear estimate, of least mean square error.

        Args:
            tokens: What the embedding gave: positions not added yet.
            prior: What patches look like. Default: none.

        Raises:
            ValueError: Tokens of another width, or a prior for other patches.
        """
        width, n = len(self.bias), self.seen.shape[1]
        if tokens.shape[-1] != width:
            raise ValueError(f"expected tokens [..., {width}]: got {list(tokens.shape)}")
        told = (tokens.double() - self.bias) @ self._read  # V^T x: [..., rank]
        patches = told @ self.seen
        if prior is not None:
            if prior.mean.shape != (n,) or prior.covariance.shape != (n, n):
                raise ValueError(
                    f"expected a prior with mean [{n}] and covariance [{n}, {n}]: got "
                    f"{list(prior.mean.shape)}, {list(prior.covariance.shape)}"
                )
            mean, covariance = prior.mean.double(), prior.covariance.double()
            across = self.unseen @ covariance @ self.seen.mT  # [n - rank, rank]
            within = torch.linalg.pinv(self.seen @ covariance @ self.seen.mT, hermitian=True)
            surprise = told - self.seen @ mean
            patches = patches + (self.unseen @ mean + surprise @ (across @ within).mT) @ self.unseen
        return patches.to(tokens.dtype)

    def images(
        self, tokens: Tensor, grid: tuple[int, int], prior: PatchPrior | None = None
    ) -> Tensor:
        """Gives the pictures that an embedding maps to these tokens; see :meth:`patches`.

        Args:
            tokens: What the embedding gave, ``[batch, patches, d]``: no class token, and positions
                not added yet.
            grid: Rows and columns of patches.
            prior: What patches look like. Default: none.

        Returns:
            ``[batch, channels, height, width]``.

        Raises:
            ValueError: Tokens of another width or number, or a prior for other patches.
        """
        return unpatchify(self.patches(tokens, prior), grid, self.patch_size)
