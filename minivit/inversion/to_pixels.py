"""From tokens straight to the pixels: a first guess, by a model's answers to noise, then L-BFGS."""

import math

import torch
from torch import Tensor, nn

from minivit.inversion.criterion import noise
from minivit.inversion.exact.embedding import EmbeddingInverse
from minivit.inversion.optimise import invert
from minivit.networks.mixer import Mixer
from minivit.networks.patches import pair, patchify, unpatchify
from minivit.networks.vit import PatchEmbedding, ViT
from minivit.recording import activation

PICTURES = 100  # of noise, to fit the guess to
RIDGE = 1e-4  # added to the features' variance, as a share of its mean
AROUND = 0.5  # deviation of the noise that makes several starts of a guess
TRIED = 100  # steps of L-BFGS from each of them, before all but one are given up


@torch.no_grad()
def linear_guess(model: ViT | Mixer, at: str, tokens: Tensor, seed: int = 0) -> Tensor:
    """Guesses the pictures that a model turned into these tokens: a linear function of each token.

    With residuals a token still looks much like the patch that it began as. So the model is shown
    pictures of noise from N(0, 1), and their patches are fitted to the tokens that came of them by
    ridge regression (Hoerl & Kennard 1970): one matrix for all places, a mean for each. No picture
    of any data set is needed.

    Args:
        model: In evaluation mode.
        at: The name of a block.
        tokens: What the block gave, ``[batch, tokens, dim]``, in the model's dtype. A class token
            is not made use of.
        seed: For the noise.

    Returns:
        ``[batch, channels, height, width]``, in the model's input space.
    """
    config, places = model.config, model.config.grid[0] * model.config.grid[1]
    like = tokens.new_empty(1, PICTURES, config.channels, *pair(config.image_size))
    pictures = noise(like, seed)[0]
    function = activation(model, at)
    seen = torch.cat([function(some) for some in pictures.split(10)])[:, -places:]
    patches = patchify(pictures, config.patch_size)  # [pictures, places, numbers of a patch]
    mean, typical = seen.mean(0), patches.mean(0)
    features = (seen - mean).flatten(0, 1)  # [pictures * places, dim]
    gram = features.mT @ features
    gram.diagonal().add_(RIDGE * gram.diagonal().mean())
    matrix = torch.linalg.solve(gram, features.mT @ (patches - typical).flatten(0, 1))
    guess = (tokens[:, -places:] - mean) @ matrix + typical
    return unpatchify(guess, config.grid, config.patch_size)


class Told(nn.Module):
    """A model up to a block, that reads what its patch embedding tells of a picture, not pixels.

    With the embedding ``W = U S V^T`` these are the numbers ``S V^T x`` of every patch ``x``. They
    become tokens by a rotation, so that a search over them need not learn the singular values.
    Without a patch embedding they are the pixels themselves.
    """

    def __init__(self, model: ViT | Mixer, at: str) -> None:
        super().__init__()
        self.model, self.embedding = model, model.patch_embedding
        self.function = activation(model, at)
        if isinstance(self.embedding, PatchEmbedding):
            inverse, like = EmbeddingInverse(self.embedding), next(model.parameters())
            self.values, self.seen = inverse.values[: inverse.rank].to(like), inverse.seen.to(like)

    def told(self, images: Tensor) -> Tensor:
        """Turns pictures into these numbers, ``[batch, patches, rank]``."""
        if not isinstance(self.embedding, PatchEmbedding):
            return images
        return patchify(images, self.model.config.patch_size) @ self.seen.mT * self.values

    def images(self, told: Tensor) -> Tensor:
        """The way back; what the embedding does not tell is zero."""
        if not isinstance(self.embedding, PatchEmbedding):
            return told
        patches = told / self.values @ self.seen
        return unpatchify(patches, self.model.config.grid, self.model.config.patch_size)

    def forward(self, told: Tensor) -> Tensor:
        """Gives the block's tokens, ``[batch, tokens, dim]``, of pictures that tell this."""
        return self.function(self.images(told))


def to_pixels(
    model: ViT | Mixer, at: str, tokens: Tensor, starts: int = 1, steps: int = 4000, seed: int = 0
) -> Tensor:
    """Finds the pictures that a model turned into these tokens, by L-BFGS over the pixels.

    It starts at the :func:`linear_guess`, or at the best of several places around it. A start near
    a solution shows it early: all begin, and the one nearest in tokens after 100 steps goes on. A
    patch embedding is taken out of the way, see :class:`Told`; what it loses of a picture is zero.

    Args:
        model: In evaluation mode.
        at: The name of a block.
        tokens: What the block gave, ``[batch, tokens, dim]``, in the model's dtype: float64, if the
            pictures shall be exact.
        starts: For each picture. Default: 1, the guess itself.
        steps: Steps of L-BFGS at most. Default: 4000.
        seed: For the noise.

    Returns:
        ``[batch, channels, height, width]``: the nearest in tokens that were met.
    """
    guesses, reader, found = linear_guess(model, at, tokens, seed), Told(model, at).eval(), []
    for target, start in zip(tokens.split(1), guesses.split(1), strict=True):
        if starts > 1:
            around = AROUND * noise(start.new_empty(1, starts, *start.shape[1:]), seed)[0]
            many = target.expand(starts, -1, -1)
            tried = invert(reader, target=many, start=reader.told(start + around), steps=TRIED)
            nearest = tried.feature_distance.nan_to_num(math.inf).amin(1).argmin()
            start = reader.images(tried.image[nearest][None])
        ended = invert(reader, target=target, start=reader.told(start), steps=steps)
        found.append(reader.images(ended.image))
    return torch.cat(found)
