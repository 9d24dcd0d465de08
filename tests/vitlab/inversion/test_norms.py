"""LayerNorm's fibres: every member has the same output, and as many numbers are lost as is said."""

import pytest
import torch
from torch import nn

from minivit.mixer import TokenNorm
from tests.parity import close, random
from vitlab.inversion import fibre, meeting
from vitlab.krylov import jacobian


def norm_of(dim, eps=1e-6, kind=nn.LayerNorm):
    norm = kind(dim, eps=eps).double().requires_grad_(False)
    norm.weight.copy_(1 + 0.3 * random(dim, seed=1))
    norm.bias.copy_(random(dim, seed=2))
    return norm


THREE = torch.tensor([[0, 2, 4], [-1, 0, 1], [2.1, 2.2, 2.3]], dtype=torch.float64)


def test_fibres_hold_known_vectors_and_every_member_has_the_same_output():
    means = THREE.mean(1, keepdim=True)
    norm = nn.LayerNorm(3, eps=0, elementwise_affine=False)
    y = norm(THREE)
    close(y, y[:1].expand(3, -1))
    family = fibre(norm, y[:1])
    assert family.dimension == 2
    close(family.at(shift=means, scale=THREE.std(1, correction=0)[:, None]), THREE)
    norm = nn.LayerNorm(3, eps=1e-5, elementwise_affine=False)
    family = fibre(norm, norm(THREE))
    assert family.dimension == 1
    close(family.scale, (THREE.var(1, correction=0) + 1e-5).sqrt()[:, None], 1e-9)
    close(family.at(means), THREE, 1e-9)
    x, norm = random(2, 5, 12), norm_of(12)
    family = fibre(norm, norm(x))
    for shift in 0.0, -7.5, random(2, 5, 1, seed=3):
        close(norm(family.at(shift)), norm(x))
    close(family.at(x.mean(-1, keepdim=True)), x, 1e-8)
    norm = norm_of(5, kind=TokenNorm)
    family = fibre(norm, norm(x))
    assert family.scale.shape == (2, 1, 12)
    close(norm(family.at(random(2, 1, 12, seed=3))), norm(x))
    close(family.at(x.mean(1, keepdim=True)), x, 1e-8)
    norm, x = norm_of(6), torch.full((1, 6), 3.0).double()
    close(fibre(norm, norm(x)).at(3.0), x, 1e-8)  # a constant comes back as its shift
    x, norm = random(2, 5, 12), norm_of(12, eps=0)
    family = fibre(norm, norm(x))
    assert family.scale.isnan().all() and family.scale_error.isinf().all()
    for scale in 1e-3, 1.0, random(2, 5, 1, seed=3).abs():
        close(norm(family.at(2.0, scale)), norm(x), 1e-10)


@pytest.mark.parametrize("eps", [0, 1e-3])
def test_as_many_numbers_are_lost_as_the_jacobian_lacks_in_rank(eps):
    x, norm = random(4, 9), norm_of(9, eps)
    values = torch.linalg.svdvals(jacobian(norm, x))
    rank = (values > 1e-10 * values[:, :1]).sum(1)
    family = fibre(norm, norm(x))
    assert (rank == 9 - family.dimension).all()
    close(norm(family.at(1.5, None if eps else 0.7)), norm(x), 1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_error_of_the_scale_is_foretold(dtype):
    for spread in 0.1, 1.0, 10.0:
        x, norm = (spread * random(500, 64)).to(dtype), norm_of(64).to(dtype)
        family = fibre(norm, norm(x))
        true = (x.double().var(-1, correction=0, keepdim=True) + 1e-6).sqrt()
        error = (family.scale.double() / true - 1).abs()
        foretold = family.scale_error.double()
        trusted = foretold < 0.1
        assert (error[trusted] < 2 * foretold[trusted]).all(), spread
        assert error.mean() > 0.01 * foretold.clamp(max=1).mean()  # and not hugely overstated
        assert trusted.all() == (dtype == torch.float64 or spread < 1)


@pytest.mark.parametrize("eps", [0, 1e-6])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_fibres_meet_the_image_of_an_embedding_in_the_token_they_came_from(eps, dtype):
    weight, offset = random(20, 12, seed=4), random(5, 20, seed=5)  # an embedding's
    x = random(2, 5, 12, seed=6) @ weight.mT + offset
    norm = norm_of(20, eps).to(dtype)
    tokens, _ = meeting(fibre(norm, norm(x.to(dtype))), weight, offset)
    assert (tokens.double() - x).norm() / x.norm() < 1e3 * torch.finfo(dtype).eps
