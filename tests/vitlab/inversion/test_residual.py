"""Residual branches and blocks undone: with a known Lipschitz constant, and in models."""

import pytest
import torch

import minivit
from tests.parity import draw, random
from vitlab.inversion import branches, invert_block, invert_residual, lipschitz

Q = torch.linalg.qr(random(6, 6)).Q


def relative(a, b):
    """The relative error of each entry."""
    return (a - b).flatten(1).norm(dim=1) / b.flatten(1).norm(dim=1)


def made(name, scale=0.1, removed=(), **changes):
    """A model, random in every number, whose branches are small enough to contract."""
    model = minivit.create(name, **changes)
    for part in removed:
        model = minivit.remove(model, part)
    model = draw(model.double().eval())
    for part in model.modules():
        if isinstance(part, minivit.MultiHeadAttention):
            part.out.weight *= scale
        elif hasattr(part, "down"):
            part.down.weight *= scale
    return model


def sine(x):
    """Lipschitz constant 0.5, met at zero."""
    return 0.5 * torch.sin(x @ Q.mT)


def test_contractions_are_undone_at_their_known_rates_and_newton_takes_over_where_they_are_none():
    x = random(4, 3, 6)
    y = x + sine(x)
    found = invert_residual(sine, y)
    assert relative(found.x, x).max() < 1e-14
    assert found.converged.all() and not found.newton.any()
    assert (found.rate < 0.5).all()  # below its Lipschitz constant
    assert (found.iterations <= 53).all()  # 2^-53 is float64's rounding
    torch.testing.assert_close(lipschitz(sine, 0 * x, 0 * x), torch.full((4,), 0.5).double())
    along = lipschitz(sine, x, y)
    assert ((along > 0.3) & (along < 0.5)).all()
    rate = invert_residual(lambda x: 0.7 * x @ Q.mT, random(2, 3, 6)).rate  # the spectral radius
    torch.testing.assert_close(rate, torch.full((2,), 0.7).double(), rtol=2e-3, atol=0)
    x = random(3, 1, 1).abs() + 1
    steepest = lipschitz(lambda x: 3 * torch.tanh(x), x, -x)  # 3 at zero, half way
    torch.testing.assert_close(steepest, torch.full((3,), 3.0).double())
    found = invert_residual(lambda x: 0.5 * x + 1, torch.zeros(1, 4).double())
    assert found.converged.all() and not found.newton.any() and (found.residual < 1e-15).all()
    torch.testing.assert_close(found.x, torch.full((1, 4), -2 / 3).double())
    skew = random(6, 6) - random(6, 6).mT  # I + skew is invertible, whatever its size
    x = random(3, 2, 6)
    y = x + x @ (3 * skew).mT
    found = invert_residual(lambda x: x @ (3 * skew).mT, y)
    assert relative(found.x, x).max() < 1e-12
    assert found.converged.all() and found.newton.all() and (found.rate > 1).all()

    def branch(x):  # -x where the first number is negative: x + f(x) = 0, whatever x
        return torch.where(x[:, :1] < 0, -x, 0.5 * x)

    y = random(6, 4)
    y[:, 0] = torch.tensor([1, -1, 1, -1, 1, -1])
    found = invert_residual(branch, y)
    assert found.converged.tolist() == [True, False] * 3
    torch.testing.assert_close(found.x[::2], y[::2] / 1.5)
    assert (found.residual[1::2] > 0.1).all()


SIZES = {"image_size": 8, "patch_size": 4, "channels": 2, "dim": 12, "depth": 2}
MODELS = {
    "vit": ("vit_8px", SIZES | {"heads": 3}),
    "vit without norms": ("vit_8px", SIZES | {"heads": 3, "removed": ["norm"]}),
    "mixer": ("mixer_8px", SIZES),
    "feedforward": ("feedforward_8px", SIZES),
    "no attention": ("vit_8px", SIZES | {"heads": 3, "removed": ["attention"]}),
}


def model_of(kind, scale=0.1):
    name, sizes = MODELS[kind]
    return made(name, scale, **sizes)


@pytest.mark.parametrize("kind", MODELS)
def test_branches_are_what_a_block_adds_and_are_undone_to_eight_digits(kind):
    model = model_of(kind)
    y = x = random(3, 4 + (model.class_token is not None), 12)
    block = model.blocks[1]
    for branch in branches(block):
        y = y + branch(y)
    assert torch.equal(y, block(x))
    found = invert_block(block, y)
    assert found.converged.all()
    assert relative(found.x, x).max() < 1e-8 and (found.residual < 1e-12).all()
    assert (found.iterations > 2).all() and ((found.rate > 0) & (found.rate < 1)).all()


def test_a_block_gets_as_many_steps_of_newton_as_asked_for_and_its_mask():
    block, x = model_of("vit", scale=2.0).blocks[0], random(3, 4, 12)
    none, many = (invert_block(block, block(x), newton=steps) for steps in (0, 50))
    assert none.newton.any() and not none.converged[none.newton].any()
    assert many.converged[none.newton].any()
    residual = relative(block(many.x), block(x))  # other tokens are not called converged
    torch.testing.assert_close(many.residual, residual)
    assert many.newton.any() and torch.equal(many.converged, residual < 1.9e-12)
    block, mask = model_of("vit").blocks[0], torch.eye(4, dtype=torch.bool)
    assert relative(invert_block(block, block(x, mask), mask).x, x).max() < 1e-8
    assert relative(invert_block(block, block(x, mask)).x, x).max() > 1e-3
