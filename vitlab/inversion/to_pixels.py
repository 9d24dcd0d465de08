"""From tokens straight to the pixels: a guess fitted to the tokens of noise, then L-BFGS."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from minivit.mixer import Mixer
from minivit.patches import pair, patchify, unpatchify
from minivit.vit import PatchEmbedding, ViT
from vitlab.calls import activation
from vitlab.inversion.criterion import noise
from vitlab.inversion.embedding import EmbeddingInverse
from vitlab.inversion.optimise import invert

PICTURES = 100  # of noise, to fit the guess to
RIDGE = 1e-4  # added to the features' variance, as a fraction of its mean
AROUND = 0.5  # standard deviation of the noise that makes several starts of a guess
TRIED = 100  # steps of L-BFGS from each of them, before all but one are given up


@torch.no_grad()
def linear_guess(
    model: ViT | Mixer, at: str, tokens: Float[Tensor, "batch tokens dim"], seed: int = 0
) -> Float[Tensor, "batch channels height width"]:
    """Guesses the images whose tokens, after the block ``at``, are these: linear in each token.

    With residuals a token still looks much like the patch that it began as. So the model is shown
    noise from N(0, 1), and its patches are fitted to their tokens by ridge regression (Hoerl &
    Kennard 1970): one matrix for all positions, a mean for each. No data set is needed. A class
    token is not used.
    """
    config = model.config
    places = config.grid[0] * config.grid[1]
    like = tokens.new_empty(1, PICTURES, config.channels, *pair(config.image_size))
    pictures = noise(like, seed)[0]
    function = activation(model, at)
    seen = torch.cat([function(some) for some in pictures.split(10)])[:, -places:]
    patches = patchify(pictures, config.patch_size)  # [images, places, numbers of a patch]
    mean = seen.mean(0)
    typical = patches.mean(0)
    features = (seen - mean).flatten(0, 1)  # [images * places, dim]
    gram = features.mT @ features
    gram.diagonal().add_(RIDGE * gram.diagonal().mean())
    matrix = torch.linalg.solve(gram, features.mT @ (patches - typical).flatten(0, 1))
    guess = (tokens[:, -places:] - mean) @ matrix + typical
    return unpatchify(guess, config.grid, config.patch_size)


class Told(nn.Module):
    """A model up to a block that reads what its patch embedding keeps of an image, not the pixels.

    With the embedding ``W = U S V^T`` that is ``S V^T x`` of each patch ``x``. An orthonormal map
    turns it into tokens, so that a search over it need not learn the singular values. Without a
    patch embedding it is the pixels themselves.
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

    def told(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "..."]:
        """What the embedding keeps of images: ``[batch, patches, rank]``."""
        if not self.linear:
            return images
        return patchify(images, self.config.patch_size) @ self.seen.mT * self.values

    def images(self, told: Float[Tensor, "..."]) -> Float[Tensor, "batch channels height width"]:
        """The way back; what the embedding loses is zero."""
        if not self.linear:
            return told
        return unpatchify(told / self.values @ self.seen, self.config.grid, self.config.patch_size)

    def forward(self, told: Float[Tensor, "..."]) -> Float[Tensor, "batch tokens dim"]:
        """The block's tokens."""
        return self.function(self.images(told))


def to_pixels(
    model: ViT | Mixer,
    at: str,
    tokens: Float[Tensor, "batch tokens dim"],
    starts: int = 1,
    steps: int = 4000,
    seed: int = 0,
) -> Float[Tensor, "batch channels height width"]:
    """Finds the images whose tokens, after the block ``at``, are these, by L-BFGS over the pixels.

    It starts at the :func:`linear_guess`, or at several points around it: then all take 100 steps,
    and the one nearest in tokens goes on. The search is over what the patch embedding keeps of an
    image, see :class:`Told`; what it loses is zero. For exact images all is in float64. Returns the
    nearest in tokens of all inputs tried.
    """
    guesses = linear_guess(model, at, tokens, seed)
    reader = Told(model, at).eval()
    images = []
    for target, start in zip(tokens.split(1), guesses.split(1), strict=True):
        if starts > 1:
            around = AROUND * noise(start.new_empty(1, starts, *start.shape[1:]), seed)[0]
            many = target.expand(starts, -1, -1)
            tried = invert(reader, target=many, start=reader.told(start + around), steps=TRIED)
            nearest = tried.feature_distance.nan_to_num(math.inf).amin(1).argmin()
            start = reader.images(tried.image[nearest][None])
        ended = invert(reader, target=target, start=reader.told(start), steps=steps)
        images.append(reader.images(ended.image))
    return torch.cat(images)
