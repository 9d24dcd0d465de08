"""Branches undone exactly and in all their solutions, on small models with known answers."""

import pytest
import torch

import minivit
from tests.parity import close, draw, random
from tests.vitlab.inversion.test_residual import relative
from vitlab.inversion import Climb, unwind
from vitlab.inversion.chain import Chain
from vitlab.inversion.folds import Factored, newton, solutions
from vitlab.inversion.learned import TokenInverse
from vitlab.inversion.peel import Peel
from vitlab.inversion.residual import branches
from vitlab.inversion.rows import row_solutions
from vitlab.inversion.solvers import levenberg_marquardt
from vitlab.krylov.products import jacobian

SIZES = {"image_size": 8, "patch_size": 2, "channels": 1, "dim": 12, "depth": 2}


def mixer(name="mixer_8px", **changes):
    return draw(minivit.create(name, **SIZES | changes).double().eval())


def pictures(n, seed=0):
    """Pictures with something to learn: each a smooth one."""
    ramp = torch.linspace(-1, 1, 8).double()
    a, b, c = random(3, n, 1, 1, 1, seed=seed)
    return a * ramp[:, None] + b * ramp + c + 0.1 * random(n, 1, 8, 8, seed=seed + 1)


@pytest.mark.parametrize("name", ["mixer_8px", "feedforward_8px", "vit_8px"])
def test_a_chain_has_the_models_tokens_and_their_whole_jacobian(name):
    model = mixer(name, **({"heads": 3} if name == "vit_8px" else {}))
    chain, image = Chain(model, "blocks.1", torch.float64), pictures(1)
    close(chain.states(image)[-1], model.tokens(image).detach())
    for level in 0, 1, 4:
        pace = chain.jacobian(image, level, torch.eye(64).double().view(-1, 1, 8, 8))
        close(pace.flatten(0, 1), jacobian(lambda x: chain.states(x)[level], image)[0])  # noqa: B023
    shape = chain.states(image)[-1].shape
    moved, along = random(*shape, seed=2), random(*shape[1:], 2, seed=3)
    pace = chain.jacobian(image, 4, image, moved, along)
    ahead = jacobian(lambda z: chain.states(image, 4, moved + along @ z[0])[-1], random(1, 2) * 0)
    close(pace[..., 1:].flatten(0, 1), ahead[0])


def test_the_exact_direction_of_a_mixing_is_a_dense_solve_and_its_smallest_values_those_of_an_svd():
    branch, x = branches(mixer().blocks[0])[0], random(1, 16, 12)
    factored, j = Factored(branch, x), jacobian(lambda x: x + branch(x), x)[0]
    r = random(16, 12, seed=1)
    close(factored.solve(r).flatten(), torch.linalg.solve(j, r.flatten()))
    close(factored.solve_transposed(r).flatten(), torch.linalg.solve(j.mT, r.flatten()))
    u, s, v = factored.smallest(4)
    close(s[:2], torch.linalg.svdvals(j).flip(0)[:2], 1e-3)
    close(j @ v[0].flatten(), s[0] * u[0].flatten(), 1e-3)


@pytest.mark.parametrize("kind", ["mixing", "tokens", "channels"])
def test_solutions_across_folds_are_found_and_the_nearest_is_first(kind):
    model = mixer("feedforward_8px" if kind == "channels" else "mixer_8px")
    branch = branches(model.blocks[0])[int(kind != "mixing")]
    branch.part.down.weight *= 3
    several = 0
    for seed in range(6):
        x = random(1, 17 if kind == "channels" else 16, 12, seed=seed)
        y = x + branch(x)
        if kind == "mixing":
            found = solutions(branch, y, x, lambda z: (z - x).norm().item(), 8)  # noqa: B023
        else:
            found = row_solutions(branch, y, x, torch.eye(12).double())
        assert relative(found[0], x) < 1e-9  # itself
        for other in found[1:]:
            assert relative(other, x) > 1e-7
            assert relative(other + branch(other), y) < 1e-8
        several += len(found) > 1
    assert several > 2


def test_rows_that_one_start_does_not_solve_are_solved_from_others_around_it():
    branch = branches(mixer().blocks[0])[1]
    branch.part.down.weight *= 3
    for seed in range(4):
        x = random(1, 16, 12, seed=seed)
        y, near = x + branch(x), x + random(1, 16, 12, seed=seed + 100)
        once = levenberg_marquardt(branch.by_row, branch.rows(y), branch.rows(near), 200, 1e-3)
        assert 0 < (once.residual > 1e-8).sum() < 4
        found = row_solutions(branch, y, near, torch.eye(12).double())[0]
        assert relative(found + branch(found), y) < 1e-12


def test_newton_says_where_it_ends_if_there_is_no_solution():
    branch, x = branches(mixer().blocks[0])[0], random(1, 16, 12)
    y = (x + branch(x)).index_fill(1, torch.tensor([3]), torch.nan)
    assert not newton(branch, y, x)[1] < 1


def test_tokens_of_a_wild_mlp_are_found_from_what_was_learned():
    branch = branches(mixer().float().blocks[0])[1]
    x = random(4000, 12).float() @ random(12, 12, seed=1).float() * 0.3
    y = branch.by_row(x)
    inverse = TokenInverse(branch, x[400:], y[400:])
    learned = relative(inverse(y[:400]), x[:400])
    assert learned.mean() < relative(y[:400], x[:400]).mean() / 2
    found, solved = inverse.solve(y[:400])
    assert solved.float().mean() > 0.95
    right = relative(found, x[:400]) < 1e-2
    assert right.float().mean() > 0.8 and (learned[right] > 1e-3).any()


def climbed(name, **changes):
    model = minivit.create(name, **SIZES | changes).double().eval()
    torch.manual_seed(0)
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    climb = Climb(model, "blocks.1", pictures(300, seed=7).float())
    return model, climb


STEM = {"heads": 3, "stem": "conv", "patch_size": 4, "dim": 96}


@pytest.mark.parametrize(
    ("name", "changes"),
    [("mixer_8px", {}), ("feedforward_8px", {}), ("vit_8px", {"heads": 3}), ("vit_8px", STEM)],
)
def test_images_come_back_branch_by_branch_and_their_certificate_is_zero(name, changes):
    model, climb = climbed(name, **changes)
    images = pictures(2)
    found = unwind(model, model.tokens(images).detach(), "blocks.1", start=climb)
    assert found.exact.all() and (relative(found.image, images) < 1e-6).all()
    last = [stage for stage in found.stages if stage.name == "first block"]
    assert [(s.entries.item(), s.off[0] < 1e-8, *s.stopped) for s in last] == [(0, 1), (1, 1)]
    branch = [stage for stage in found.stages if stage.found]
    assert branch and all(stage.found[0] > stage.taken[0] for stage in branch)
    assert all(not stage.name.startswith("pixels") for stage in found.stages)
    peel = Peel(model, "blocks.1", climb)
    x = peel.chain.states(images[:1], peel.bottom)[-1]
    assert peel._off(images[:1], x) < 1e-12 < 1e-2 < peel._off(images[:1], 0.9 * x)  # no image's


def test_tokens_of_no_image_are_not_exact_and_the_last_stage_says_where_it_stopped():
    model, climb = climbed("mixer_8px")
    found = unwind(model, 3 * random(1, 16, 12), "blocks.1", start=climb, steps=20)
    assert not found.exact.any() and found.error > 0.01
    (stopped,) = [stage.stopped[0] for stage in found.stages if stage.stopped]
    assert stopped.startswith("branch ")


def test_the_first_mlps_inverse_knows_the_tokens_of_every_place():
    _, climb = climbed("vit_8px", heads=3, pool="mean")  # whose positions tell places apart
    x, y = (t.flatten(0, 1) for t in climb.chain.states(pictures(50).float(), 2)[1:])
    missing = relative(climb.first(y), x).view(50, 4, 4).mean((0, 1))
    assert missing[1:].mean() < 2 * missing[0]


def test_a_climb_keeps_its_own_weights():
    model = climbed("mixer_8px")[0].float()
    climb = Climb(model, "blocks.1", pictures(300, seed=7).float())
    given = model.tokens(pictures(1).float()).detach()
    before = climb(given)
    model.double()
    close(climb(given), before)


def test_a_climb_that_has_arrived_goes_no_farther():
    _, climb = climbed("mixer_8px")
    start = pictures(1).float()
    there = climb.chain.states(start, 3)[-1]
    close(climb.nearer(start, there, 3, steps=4), start, 0)
