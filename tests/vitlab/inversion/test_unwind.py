"""The way back from a block's tokens to the image, checked by the forward pass."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import minivit
import vitlab.inversion
from tests.parity import random
from tests.vitlab.inversion.test_residual import made, relative
from vitlab.calls import activation
from vitlab.data import load_data
from vitlab.inversion import Climb, decibels, invert, linear_guess, unwind
from vitlab.inversion.residual import branches
from vitlab.krylov import norms


def pictures(n, seed=0, size=(8, 8)):
    return random(n, 1, *size, seed=seed)


def tokens(model, images, at):
    with torch.no_grad():
        return activation(model, at)(images)


def unwound(model, images, at):
    """What unwind gives, which is the images."""
    found = unwind(model, tokens(model, images, at), at)
    assert found.exact.all(), found.stages
    again = relative(tokens(model, found.image, at), tokens(model, images, at))
    torch.testing.assert_close(found.error, again)
    assert (relative(found.image, images) < 1e-6).all()
    return found


@pytest.mark.parametrize(("name", "changes"), [
    ("vit_8px", {"pool": "class"}),
    ("vit_8px", {"image_size": (8, 12), "window": 2}),
    ("vit_8px", {"local": 3, "positions": "sincos2d"}),
    ("vit_8px", {"removed": ["norm"]}),
    ("mixer_8px", {"image_size": (8, 12)}),
    ("feedforward_8px", {}),
    ("vit_8px", {"stem": "conv"}),
    ("vit_8px", {"patch_size": 4, "dim": 16}),
])  # fmt: skip
def test_class_tokens_masks_stems_and_images_that_are_not_square(name, changes):
    heads = {"heads": 2} if name == "vit_8px" else {}
    model = made(name, **{"dim": 24, "depth": 2} | heads | changes)
    images = pictures(2, size=changes.get("image_size", (8, 8)))
    found = unwound(model, images, "blocks.1")
    assert found.stages[0].method == ("fixed point",) * 2 and len(found.stages) == 2
    assert (found.stages[0].error < 1e-12).all() and found.error.max() < 1e-12
    assert [s.name for s in unwound(model, images, "blocks.0").stages] == ["pixels from blocks.0"]


def spoiled(monkeypatch, change):
    """Has unwind read what ``change`` makes of each block's inverse."""

    def invert_block(*given):
        found = vitlab.inversion.invert_block(*given)
        change(found)
        return found

    monkeypatch.setattr(sys.modules["vitlab.inversion.unwind"], "invert_block", invert_block)


def test_where_blocks_cannot_be_undone_the_way_leads_straight_to_the_pixels(monkeypatch):
    """The second image gets tokens that its block gives, but that are no image's."""

    def astray(found):
        found.residual[0] = 0.5  # did not converge
        found.x[1] += 0.5  # converged elsewhere

    model, images = made("vit_8px", patch_size=4, dim=24, depth=3, heads=3), pictures(3)
    spoiled(monkeypatch, astray)
    first, pixels, straight = unwound(model, images, "blocks.1").stages
    assert straight.name == "pixels from blocks.1" and straight.entries.tolist() == [0, 1]
    assert pixels.entries.tolist() == [1, 2] and pixels.method == ("lbfgs", "lbfgs")
    assert pixels.error[0] > 1e-3 and pixels.error[1] < 1e-12 and first.error[0] == 0.5
    spoiled(monkeypatch, lambda found: found.residual.fill_(0.5))  # of no image
    stages = unwound(model, images[:1], "blocks.2").stages
    assert [s.name for s in stages] == ["blocks.2", "pixels from blocks.2"]


@pytest.mark.parametrize(("at", "before"), [("blocks.1", 3), ("blocks.0", 2)])
def test_where_the_guess_does_not_do_the_best_start_around_it_goes_on(at, before, monkeypatch):
    starts = []

    def trapped(*args, start, **kwargs):
        """Ends beside the image from the guess, and from seven of the eight starts around it."""
        starts.append(start)
        found = invert(*args, start=start, **kwargs)
        bad = [0] if len(starts) < before else range(7) if len(start) == 8 else []
        for i in bad:
            found.image[i] += 1
            found.feature_distance[i] += 1
        return found

    model, images = made("vit_8px", dim=12, depth=2, heads=3, stem="conv"), pictures(1)
    monkeypatch.setattr(sys.modules["vitlab.inversion.unwind"], "invert", trapped)
    found = unwound(model, images, at)
    assert found.stages[-1].name == "restarts" and [len(s) for s in starts[-2:]] == [8, 1]
    apart = starts[-2] - starts[-3]
    assert apart.std().item() == pytest.approx(0.5, rel=0.2)
    assert len({tuple(a.flatten().tolist()) for a in apart}) == 8
    assert (starts[-1] - images).norm() < 1e-3 * images.norm()


def test_the_guess_is_the_image_where_tokens_are_embedded_patches():
    for name, changes in (
        ("vit_8px", {"pool": "class", "image_size": (8, 12)}),
        ("vit_8px", {"patch_size": 4, "positions": "sincos2d"}),
        ("feedforward_8px", {"channels": 3}),
    ):
        model = made(name, scale=0, dim=24, **changes)  # branches add a constant
        size, channels = changes.get("image_size", (8, 8)), changes.get("channels", 1)
        images = pictures(3, size=size).expand(-1, channels, -1, -1) + 1
        guess = linear_guess(model, "blocks.3", tokens(model, images, "blocks.3"))
        assert (guess - images).norm() < 0.02 * images.norm(), name


def test_tokens_that_no_image_gives_are_not_called_exact(monkeypatch):
    monkeypatch.setattr(sys.modules["vitlab.inversion.unwind"], "TRIED", 10)
    model = made("vit_8px", patch_size=4, dim=24, depth=2, heads=3)
    found = unwind(model, torch.randn(1, 4, 24, dtype=torch.float64), "blocks.1", steps=50)
    assert not found.exact.any() and found.error > 0.1
    assert found.image.isfinite().all() and len(found.stages) == 4


def test_float32_tokens_and_models_are_unwound_to_their_own_digits():
    model, images = made("vit_8px", patch_size=4, dim=24, depth=2, heads=3).float(), pictures(2)
    images = images.float()
    found = unwind(model, tokens(model, images, "blocks.1"), "blocks.1", steps=100)
    assert found.exact.all() and found.tolerance == pytest.approx(6.4e-6, rel=0.01)
    assert found.image.dtype == torch.float64 and next(model.parameters()).dtype == torch.float32
    torch.testing.assert_close(found.image.float(), images, rtol=0, atol=1e-4)


def test_a_process_that_never_held_the_image_finds_it(tmp_path):
    """Only the name of a trained model and tokens are handed over."""
    model = minivit.load("digits_vit").double()
    images = model.preprocess(load_data("DIGITS").test.images[:2]).double()
    torch.save(tokens(model, images, "blocks.3"), tmp_path / "tokens.pt")
    code = (
        "import sys, torch, minivit; from vitlab.inversion import unwind\n"
        "model, tokens = minivit.load('digits_vit'), torch.load('tokens.pt')\n"
        "found = unwind(model, tokens, at='blocks.3')\n"
        "assert 'sklearn' not in sys.modules and 'vitlab.training' not in sys.modules\n"
        "torch.save((found.image, found.exact), 'found.pt')\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path.cwd())}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
    image, exact = torch.load(tmp_path / "found.pt")
    assert exact.all()
    assert (relative(image, images) < 1e-6).all()  # 120 dB


@pytest.mark.parametrize("name", ["vit_8px", "mixer_8px", "feedforward_8px"])
def test_from_an_image_nearby_every_branch_is_solved_from_its_states(name):
    torch.manual_seed(0)
    model = minivit.create(name).eval().double()
    images = pictures(2)
    at, start = "blocks.3", images + 1e-3 * pictures(2, seed=1)
    found = unwind(model, tokens(model, images, at), at, start=start)
    assert found.exact.all() and (relative(found.image, images) < 1e-6).all()
    assert {stage.method[0] for stage in found.stages[:-1]} == {"newton"}


@pytest.mark.parametrize(("name", "index"), [("mixer_8px", 1), ("feedforward_8px", 1)])
def test_a_token_or_channel_that_is_not_solved_leaves_the_others_alone(name, index):
    torch.manual_seed(0)
    model = minivit.create(name).eval().double()
    branch = branches(model.blocks[0])[index]
    x = random(1, 17 if model.class_token is not None else 16, 64)
    y, start = x + branch(x).detach(), x + 1e-3
    rows = y if name == "mixer_8px" else y.mT
    rows[0, 2] = torch.nan
    found = branch.nearest(y, start, 0).x
    right = (found - x).abs() < 1e-9
    lines = right[0].all(1 if name == "mixer_8px" else 0)
    assert lines.sum() == len(lines) - 1 and not lines[2]


def test_a_climb_brings_tokens_and_images_nearer_than_what_it_learned():
    model = minivit.load("digits_mixer").eval()
    data = load_data("DIGITS")
    learned, images = (model.preprocess(some) for some in (data.train.images, data.test.images[:3]))
    at = "blocks.3"
    climb, given = Climb(model, at, learned), tokens(model, images, at)
    guess, found = climb.guess(given), climb(given)
    assert (decibels(norms(found - images), images) > 20).all()
    assert (norms(found - images) < norms(guess - images)).all()
    before, after = (relative(tokens(model, x, at), given) for x in (guess, found))
    assert (after < before).all()
