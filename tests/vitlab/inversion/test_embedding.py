"""The patch embedding undone: what it keeps exactly, and what a prior says of the rest."""

import pytest
import torch

from minivit.patches import patchify
from minivit.vit import PatchEmbedding
from tests.parity import close, random
from vitlab.inversion import EmbeddingInverse, PatchPrior


def embedding(dim):
    """From patches of 24 numbers, random in every number."""
    layer = PatchEmbedding((2, 4), dim, 3).double().requires_grad_(False)
    layer.projection.weight.copy_(random(*layer.projection.weight.shape, seed=1))
    layer.projection.bias.copy_(random(dim, seed=2))
    return layer


@pytest.mark.parametrize("dim", [24, 40])
def test_an_embedding_with_room_for_a_patch_is_undone_exactly(dim):
    layer, images = embedding(dim), random(2, 3, 6, 8)
    inverse = EmbeddingInverse(layer)
    assert inverse.rank == 24 and len(inverse.unseen) == 0
    close(inverse.images(layer(images), (3, 2)), images)
    close(inverse.images(layer(images), (3, 2), PatchPrior.of(random(9, 3, 6, 8), (2, 4))), images)


def test_a_narrow_embedding_keeps_its_rows_and_a_filter_that_repeats_tells_nothing_new():
    layer, images = embedding(10), random(2, 3, 6, 8)
    inverse, weight = EmbeddingInverse(layer), layer.projection.weight.flatten(1)
    assert inverse.rank == 10 and inverse.unseen.shape == (14, 24)
    basis = torch.cat([inverse.seen, inverse.unseen])
    close(basis @ basis.mT, torch.eye(24).double())
    close(weight @ inverse.unseen.mT, torch.zeros(10, 14).double())
    close(inverse.values, torch.linalg.svdvals(weight))
    assert inverse.condition == pytest.approx(torch.linalg.cond(weight).item())
    back = inverse.images(layer(images), (3, 2))
    close(layer(back), layer(images))
    pinv = (layer(images) - layer.projection.bias) @ torch.linalg.pinv(weight).mT
    close(patchify(back, (2, 4)), pinv)
    assert (back - images).norm() > 0.5 * images.norm()
    layer = embedding(10)
    layer.projection.weight[3] = 2 * layer.projection.weight[7]
    inverse = EmbeddingInverse(layer)
    assert inverse.rank == 9 and inverse.condition < 100
    images = random(2, 3, 6, 8)
    close(layer(inverse.images(layer(images), (3, 2))), layer(images))


def test_with_a_prior_it_is_the_conditional_mean_of_a_gaussian_of_patches():
    layer, spread = embedding(10), random(24, 24, seed=3)
    prior = PatchPrior(random(24, seed=4), spread @ spread.mT)
    patches = prior.mean + random(4000, 24, seed=5) @ spread.mT
    weight, bias = layer.projection.weight.flatten(1), layer.projection.bias
    tokens = patches @ weight.mT + bias
    inverse = EmbeddingInverse(layer)
    back = inverse.patches(tokens, prior)
    gain = prior.covariance @ weight.mT @ torch.linalg.inv(weight @ prior.covariance @ weight.mT)
    close(back, prior.mean + (tokens - bias - prior.mean @ weight.mT) @ gain.mT, 1e-8)
    close(back @ weight.mT + bias, tokens)  # what the tokens tell is kept

    def error(patches_back):
        return (patches_back - patches).square().sum(1).mean()

    left = prior.covariance - gain @ weight @ prior.covariance  # the theory's mean square error
    assert error(back) == pytest.approx(left.trace().item(), rel=0.05)
    assert error(back) < 0.7 * error(inverse.patches(tokens))
    images = random(5, 3, 6, 8)
    prior, patches = PatchPrior.of(images, (2, 4)), patchify(images, (2, 4)).flatten(0, 1)
    close(prior.mean, patches.mean(0))
    centred = patches - patches.mean(0)
    close(prior.covariance, centred.mT @ centred / (len(patches) - 1))
    layer = embedding(10)
    images = (random(60, 6, seed=3) @ random(6, 24, seed=4)).view(60, 3, 2, 4)  # rank 6 of 24
    prior = PatchPrior.of(images, (2, 4))
    close(EmbeddingInverse(layer).images(layer(images), (1, 1), prior), images, 1e-7)
