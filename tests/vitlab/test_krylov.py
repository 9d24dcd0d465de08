"""Products with Jacobians, Lanczos and GMRES beside torch.linalg on matrices that are written out."""

import pytest
import torch

import minivit
from tests.parity import close, draw, random
from vitlab import krylov


def times(matrices):
    """Products with a matrix for every entry, [batch, m, n]."""
    return lambda v: (matrices @ v[..., None])[..., 0]


def block():
    return draw(minivit.create("vit_8px", dim=12, heads=3).double().eval()).blocks[0]


def test_products_through_attention_are_those_of_forward_mode():
    layer, x, v = block().requires_grad_(), random(2, 5, 12), random(2, 5, 12, seed=1)
    with krylov.plain_attention():
        value, expected = torch.func.jvp(layer, (x,), (v,))
    at = krylov.linearise(layer, x)
    close(at.value, value)
    close(at.push(v), expected)
    assert not any(t.requires_grad for t in (at.value, at.push(v), at.pull(v)))
    close((at.push(v) * x).sum(), (at.pull(x) * v).sum())
    close(krylov.jacobian(layer, x) @ v.flatten(1)[..., None], expected.flatten(1)[..., None])


def test_the_hessian_of_a_function_that_is_written_out_and_of_a_loss_through_attention():
    a, x, v = random(3, 4, 4), random(3, 4, seed=1), random(3, 4, seed=2)
    product = krylov.hessian(lambda x: (times(a)(x) * x).sum(1) + x.pow(3).sum(1), x)
    close(product(v), times(a + a.mT)(v) + 6 * x * v)
    layer, x, v = block(), random(2, 5, 12), random(2, 5, 12, seed=1)
    h, gradient = 1e-4, torch.func.grad(lambda x: layer(x).pow(4).sum())
    known = (gradient(x + h * v) - gradient(x - h * v)) / (2 * h)
    close(krylov.hessian(lambda x: layer(x).pow(4).sum((1, 2)), x)(v), known, 1e-5)


def symmetric(values):
    """A matrix with these eigenvalues, [batch, n]."""
    q = torch.linalg.qr(random(*values.shape, values.shape[-1])).Q
    return q @ torch.diag_embed(values) @ q.mT


@pytest.mark.parametrize("values", [
    torch.linspace(-3, 5, 12).double(),
    torch.tensor([2.0] * 5 + [-1.0] * 7).double(),  # the start reaches two dimensions alone
    torch.zeros(12).double(),
    torch.logspace(-12, 0, 12).double(),
])  # fmt: skip
def test_lanczos_finds_every_eigenvalue_in_as_many_steps_as_dimensions(values):
    matrices, state = symmetric(torch.stack([values, values.flip(0)])), torch.get_rng_state()
    found = krylov.lanczos(times(matrices), random(2, 12, seed=1), 99)
    close(found.values, values.sort().values.expand(2, -1), 1e-12)
    assert found.errors.max() < 1e-10
    vectors = found.vectors  # every direction after an exhausted one is random
    close(vectors @ vectors.mT, torch.eye(12).double().expand(2, -1, -1))
    close(matrices @ vectors.mT, vectors.mT * found.values[:, None])
    assert torch.equal(torch.get_rng_state(), state)  # the caller's


@pytest.mark.parametrize(("rows", "columns"), [(14, 9), (9, 14), (10, 10)])
@pytest.mark.parametrize("rank", [9, 4])
def test_bidiagonalisation_finds_every_singular_value_from_the_smaller_side(rows, columns, rank):
    a = random(2, rows, rank) @ random(2, rank, columns, seed=1)
    push, pull, n = times(a), times(a.mT), columns
    if rows < columns:
        push, pull, n = pull, push, rows
    found = krylov.singular_values(push, pull, random(2, n, seed=2), 99)
    close(found.values, torch.linalg.svdvals(a))
    assert found.errors.max() < 1e-10
    close(push(found.vectors[:, 0]).norm(dim=1), found.values[:, 0])
    values = torch.logspace(0, -10, 12).double()  # of which the small keep their digits
    u, v = (torch.linalg.qr(random(1, 12, 12, seed=seed)).Q for seed in (0, 1))
    a = u @ torch.diag(values) @ v.mT
    found = krylov.singular_values(times(a), times(a.mT), random(1, 12, seed=2), 12)
    close(found.values[0, -1] / values[-1], torch.tensor(1.0).double(), 1e-4)


def test_few_steps_find_the_extremes_and_bound_the_error():
    a = random(2, 300, 200)
    a[:, 0] *= 10
    found = krylov.singular_values(times(a), times(a.mT), random(2, 200, seed=1), 30)
    exact = torch.linalg.svdvals(a)
    close(found.values[:, 0], exact[:, 0], 1e-8)
    assert (found.values[:, -1] >= exact[:, -1]).all()  # the smallest come from above
    nearest = (found.values[..., None] - exact[:, None]).abs().amin(2)
    assert (nearest <= found.errors + 1e-10).all() and found.errors.max() > 1e-2


@pytest.mark.parametrize("restart", [60, 20])
def test_gmres_solves_what_torch_solves(restart):
    a, b = random(3, 40, 40) + 9 * torch.eye(40), random(3, 40, seed=1)
    close(krylov.gmres(times(a), b, 1e-12, restart, 900), torch.linalg.solve(a, b), 1e-9)
    a[0] = torch.eye(40)  # which is solved at once, and is not disturbed by the others
    b[0] *= 1e-5
    found = krylov.gmres(times(a), b, 1e-12, restart, 900)
    close(found, torch.linalg.solve(a, b), 1e-9)
    close(found[0] / b[0], torch.ones(40).double())


def counted(a):
    """The products with matrices, and a list of one entry for each."""
    calls = []
    return lambda v: calls.append(1) or times(a)(v), calls


def test_gmres_stops_where_it_cannot_converge_and_takes_as_many_steps_as_different_eigenvalues():
    a = torch.eye(20).double().repeat(3, 1, 1)
    a[1, 5, 5] = 0  # no solution
    a[2] = a[2].roll(1, 0)  # the residual does not fall before the last step
    product, calls = counted(a)
    b = random(3, 20, seed=1)
    found = krylov.gmres(product, b, restart=10, iterations=30)
    left = (times(a)(found) - b).norm(dim=1) / b.norm(dim=1)
    assert left[0] < 1e-6 < left[1:].min() and len(calls) == 30 + 3  # one for each restart
    values = torch.tensor([3.0] * 10 + [-2.0] * 10 + [0.5] * 10).double()
    product, calls = counted(symmetric(values[None]))
    b = random(1, 30, seed=1)
    close(product(krylov.gmres(product, b, 1e-10)), b, 1e-9)
    assert len(calls) == 3 + 2  # to check its answer, and here
    assert not krylov.gmres(times(random(1, 5, 5)), torch.zeros(1, 5).double()).any()
    a = torch.stack([torch.full((5, 5), torch.nan).double(), random(5, 5) + 9 * torch.eye(5)])
    b = random(2, 5, seed=1)
    close(times(a)(krylov.gmres(times(a), b, 1e-12, restart=3))[1], b[1], 1e-9)
