"""The patch embedding inverted: what it keeps of a patch, what it loses, and the way back.

With ``W = U S V^T``, a token ``W x + b`` determines ``V^T x`` and nothing orthogonal to it.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from minivit.mixer import Mixer
from minivit.patches import pair, patchify, unpatchify
from minivit.shapes import Images, Size, Tokens
from minivit.vit import PatchEmbedding, ViT
from vitlab.boundary import checked
from vitlab.calls import activation
from vitlab.inversion.criterion import noise
from vitlab.inversion.solvers import rank_of

PICTURES = 100  # of noise, to fit the guess to
RIDGE = 1e-4  # added to the features' variance, as a fraction of its mean


@checked
@dataclass(frozen=True, eq=False)
class PatchPrior:
    """What patches look like: a Gaussian with this mean and covariance."""

    mean: Float[Tensor, " n"]
    covariance: Float[Tensor, "n n"]

    @classmethod
    @checked
    def of(cls, images: Images, patch_size: int | tuple[int, int]) -> "PatchPrior":
        """The mean and covariance of all patches, two or more, of some images."""
        patches = patchify(images, patch_size).flatten(0, 1).double()  # [batch * patches, n]
        return cls(patches.mean(0), patches.mT.cov())


@checked
class EmbeddingInverse:
    """The exact way back through a linear patch embedding, in float64."""

    values: Float[Tensor, " k"]  # singular values, descending; k is the smaller of dim and n
    rank: int  # how many numbers of a patch a token determines
    seen: Float[Tensor, "rank n"]  # V^T, an orthonormal basis of what tokens determine
    unseen: Float[Tensor, "null n"]  # an orthonormal basis of the null space, what they lose

    def __init__(self, embedding: PatchEmbedding) -> None:
        projection = embedding.projection
        weight = projection.weight.detach().flatten(1).double()  # [d, n]
        self.patch_size: Size = projection.kernel_size  # type: ignore[assignment]
        bias = projection.bias
        self.bias = weight.new_zeros(len(weight)) if bias is None else bias.detach().double()
        u, self.values, vt = torch.linalg.svd(weight)
        self.rank = rank_of(self.values, weight.shape)
        self.seen, self.unseen = vt[: self.rank], vt[self.rank :]
        self._read = u[:, : self.rank] / self.values[: self.rank]  # [d, rank]

    @property
    def condition(self) -> float:
        """The largest singular value over the smallest that is not zero."""
        return (self.values[0] / self.values[self.rank - 1]).item()

    @checked
    def patches(
        self, tokens: Float[Tensor, "... dim"], prior: PatchPrior | None = None
    ) -> Float[Tensor, "... n"]:
        """The patches of tokens without positions; the rest is zero, or the prior's mean of it."""
        known = (tokens.double() - self.bias) @ self._read  # V^T x: [..., rank]
        patches = known @ self.seen
        if prior is not None:
            mean, covariance = prior.mean.double(), prior.covariance.double()
            across = self.unseen @ covariance @ self.seen.mT  # [n - rank, rank]
            within = torch.linalg.pinv(self.seen @ covariance @ self.seen.mT, hermitian=True)
            surprise = known - self.seen @ mean
            patches = patches + (self.unseen @ mean + surprise @ (across @ within).mT) @ self.unseen
        return patches.to(tokens.dtype)

    @checked
    def images(
        self,
        tokens: Float[Tensor, "batch patches dim"],
        grid: tuple[int, int],
        prior: PatchPrior | None = None,
    ) -> Images:
        """The images of a grid (rows, columns) of patches with these tokens."""
        return unpatchify(self.patches(tokens, prior), grid, self.patch_size)


@checked
class Told(nn.Module):
    """A model up to a block that reads what its patch embedding keeps of an image, not the pixels.

    That is ``S V^T x`` of each patch ``x``, orthonormally mapped to tokens; else the pixels.
    """

    def __init__(self, model: ViT | Mixer, at: str) -> None:
        super().__init__()
        self.config = model.config
        self.function = activation(model, at)
        embedding = model.patch_embedding
        self.linear = isinstance(embedding, PatchEmbedding)
        if isinstance(embedding, PatchEmbedding):
            inverse = EmbeddingInverse(embedding)
            like = next(model.parameters())
            self.values = inverse.values[: inverse.rank].to(like)
            self.seen = inverse.seen.to(like)

    def told(self, images: Images) -> Float[Tensor, "..."]:
        """What the embedding keeps of images: ``[batch, patches, rank]``."""
        if not self.linear:
            return images
        return patchify(images, self.config.patch_size) @ self.seen.mT * self.values

    def images(self, told: Float[Tensor, "..."]) -> Images:
        """The way back; what the embedding loses is zero."""
        if not self.linear:
            return told
        return unpatchify(told / self.values @ self.seen, self.config.grid, self.config.patch_size)

    def forward(self, told: Float[Tensor, "..."]) -> Tokens:
        """The block's tokens."""
        return self.function(self.images(told))


@torch.no_grad()
def linear_guess(model: ViT | Mixer, at: str, tokens: Tokens, seed: int = 0) -> Images:
    """Guesses the images whose tokens, after the block ``at``, are these: linear in each token.

    Patches of noise are fitted to their tokens by ridge regression (Hoerl & Kennard 1970): one
    matrix for all positions, a mean for each. A class token is not used.
    """
    config = model.config
    places = config.grid[0] * config.grid[1]
    like = tokens.new_empty(1, PICTURES, config.channels, *pair(config.image_size))
    images = noise(like, seed)[0]
    function = activation(model, at)
    known = torch.cat([function(batch) for batch in images.split(10)])[:, -places:]
    patches = patchify(images, config.patch_size)  # [images, places, numbers of a patch]
    mean, typical = known.mean(0), patches.mean(0)
    features = (known - mean).flatten(0, 1)  # [images * places, dim]
    gram = features.mT @ features
    gram.diagonal().add_(RIDGE * gram.diagonal().mean())
    matrix = torch.linalg.solve(gram, features.mT @ (patches - typical).flatten(0, 1))
    guess = (tokens[:, -places:] - mean) @ matrix + typical
    return unpatchify(guess, config.grid, config.patch_size)
