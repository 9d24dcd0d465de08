"""Inversion by optimisation: known answers, honest counts, clear refusals."""

import math

import pytest
import torch
import torchvision
from torch import nn

import minivit
from tests.parity import Function, random
from tests.vitlab.inversion.test_residual import made
from vitlab.inversion import Diverged, decibels, invert, noise, shifted_distance

ALL = {"gd": 2000, "adam": 1500, "lbfgs": 200, "gauss-newton": 30}


class Linear(nn.Module):
    """``x -> W x``, and a second map behind it that an inversion of the first need not run."""

    def __init__(self, weight):
        super().__init__()
        self.first = nn.Linear(*weight.shape[::-1], bias=False, dtype=weight.dtype)
        self.second = nn.Linear(weight.shape[0], 2, dtype=weight.dtype)
        self.first.weight.data = weight
        self.calls = self.later = 0
        self.first.register_forward_hook(lambda *_: setattr(self, "calls", self.calls + 1))
        self.second.register_forward_hook(lambda *_: setattr(self, "later", self.later + 1))
        self.eval()

    def forward(self, x):
        return self.second(self.first(x.flatten(1)))


Q = torch.linalg.qr(random(24, 24)).Q
V = torch.linalg.qr(random(24, 24, seed=1)).Q
IMAGES = random(3, 4, 3, 2, seed=2)


def spread(condition):
    """A matrix with singular values from 1 down to 1 / condition."""
    return Q @ torch.diag(torch.logspace(0, -math.log10(condition), 24).double()) @ V


def of_linear(weight, **options):
    return invert(Linear(weight), IMAGES, at="first", **options)


def nearest(found):
    return found.feature_distance.nan_to_num(torch.inf).amin(1)


@pytest.mark.parametrize("optimizer", ALL)
def test_the_input_of_a_linear_map_is_found_and_at_once_from_the_image(optimizer):
    found = of_linear(spread(5), optimizer=optimizer, steps=ALL[optimizer])
    assert (found.psnr > 60).all()
    away = (found.image - IMAGES).flatten(1) @ spread(5).mT
    assert away.abs().max() < 1e-2
    torch.testing.assert_close(away.norm(dim=1), nearest(found))
    found = of_linear(spread(5), optimizer=optimizer, start=IMAGES)
    assert torch.equal(found.image, IMAGES) and (found.feature_distance[:, 0] == 0).all()
    assert found.met == [1, 1, 1] and (found.psnr == torch.inf).all()


def test_gradient_descent_takes_the_steps_of_the_formula_with_torchvisions_blur():
    weight, start = spread(3), random(3, 4, 3, 2, seed=4)
    found = of_linear(weight, optimizer="gd", steps=5, start=start, step_size=0.1)
    x, distances = start.flatten(1), []
    for _ in range(5):
        difference = (x - IMAGES.flatten(1)) @ weight.mT
        distances.append(difference.norm(dim=1))
        x = x - 0.1 * difference @ weight / distances[-1][:, None]  # gradient of the norm
    torch.testing.assert_close(found.feature_distance, torch.stack(distances, 1))
    late = of_linear(weight, optimizer="gd", steps=200).feature_distance[:, -50:]
    rate = (late[:, -1] / late[:, 0]) ** (1 / 49)  # by the smallest singular value
    torch.testing.assert_close(rate, torch.full((3,), 1 - 1 / 9).double(), rtol=1e-3, atol=0)
    start, images = torch.rand(2, 3, 4, 3, 2)
    options = {"optimizer": "gd", "start": start, "step_size": 1e-12, "steps": 4}
    found = invert(Linear(torch.eye(24)), images, at="first", blur=2.4, **options)
    steps = [start]
    for std in 2.4, 1.6, 0.8:
        steps.append(torchvision.transforms.functional.gaussian_blur(steps[-1], 3, std))
    expected = [(x - images).flatten(1).norm(dim=1) for x in steps]
    torch.testing.assert_close(found.input_distance.float(), torch.stack(expected, 1))


def vit():
    return made("vit_8px", dim=24, depth=2, heads=3)


PICTURES = torch.rand(3, 1, 8, 8, generator=torch.Generator().manual_seed(5), dtype=torch.float64)


@pytest.mark.parametrize("optimizer", ALL)
def test_every_forward_pass_is_counted(optimizer):
    model = Linear(spread(5))
    found = invert(model, IMAGES[:1], at="first", optimizer=optimizer, steps=6, step_size=None)
    passes = model.calls - 3  # the target once, and twice for the threshold
    rows = found.feature_distance[0]
    assert len(rows) == found.evaluations.item() and rows.isfinite().all()
    if optimizer in ("lbfgs", "adam"):
        assert found.evaluations.item() == passes
    elif optimizer == "gd":
        assert found.evaluations.item() == passes + 20  # products with the Jacobian
        assert (rows[:21] == rows[0]).all() and rows[22] < rows[0]
    else:  # the rest are products, which do not change the distance
        products, counted = (rows.diff() == 0).sum().item(), found.evaluations.item()
        assert 0 < passes < counted and products >= counted - passes


def test_the_criterion_is_the_distance_of_a_shifted_image_and_psnr_has_the_images_own_range():
    weight = spread(5)
    found = of_linear(weight)
    shift = noise(IMAGES, 1).flatten(1) / 20
    torch.testing.assert_close(found.threshold, (shift @ weight.mT).norm(dim=1))
    assert abs(noise(random(1, 100, 100), 7).std().item() - 1) < 0.02
    rows = zip(found.feature_distance, found.met, found.threshold, strict=True)
    for distances, first, limit in rows:
        assert distances[first - 1] < limit and (distances[: first - 1] >= limit).all()
    one, two = (shifted_distance(lambda x: x, IMAGES, std) for std in (1.0, 2.0))
    torch.testing.assert_close(two, 2 * one)
    from skimage.metrics import peak_signal_noise_ratio

    other = IMAGES + 0.1 * random(*IMAGES.shape, seed=9)
    found = decibels((other - IMAGES).flatten(1).norm(dim=1), IMAGES)
    for value, a, b in zip(found, IMAGES.numpy(), other.numpy(), strict=True):
        expected = peak_signal_noise_ratio(a, b, data_range=a.max() - a.min())
        assert value.item() == pytest.approx(expected)


@pytest.mark.parametrize("optimizer", ALL)
def test_a_batch_gives_what_its_images_give_alone(optimizer):
    model = vit()
    options = {"at": "blocks.0", "optimizer": optimizer, "steps": 8}
    together = invert(model, PICTURES, **options)
    for i in range(3):
        alone = invert(model, PICTURES[i : i + 1], **options)
        n = alone.evaluations.item()
        assert together.evaluations[i] == n
        assert together.feature_distance[i, n:].isnan().all()
        for field in "feature_distance", "input_distance":
            torch.testing.assert_close(getattr(together, field)[i, :n], getattr(alone, field)[0])
        torch.testing.assert_close(together.image[i], alone.image[0])
        torch.testing.assert_close(together.threshold[i], alone.threshold[0])


def test_the_optimiser_sees_the_target_alone():
    model = vit()
    with minivit.record(model, "blocks.1") as seen, torch.no_grad():
        model(PICTURES)
    start = 0.7 + 1 / 20 * noise(PICTURES, 0)
    known = invert(model, PICTURES, at="blocks.1", steps=15)
    unknown = invert(model, at="blocks.1", target=seen["blocks.1"], start=start, steps=15)
    assert torch.equal(known.image, unknown.image)
    assert torch.equal(known.evaluations, unknown.evaluations)
    assert unknown.psnr is unknown.input_distance is unknown.threshold is None
    assert unknown.met == [None] * 3  # from the default start


def test_the_dtype_is_the_images_and_the_model_stays_as_it_is():
    model = vit().float()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    wide, narrow = (invert(model, x, at="blocks.1") for x in (PICTURES, PICTURES.float()))
    assert wide.image.dtype == torch.float64 and (wide.psnr > 200).all()
    assert narrow.image.dtype == torch.float32 and (narrow.psnr < 180).all()
    half = invert(Linear(300 * spread(5)).half(), IMAGES.half(), at="first")  # squares overflow
    assert half.image.dtype == torch.float32 and (half.psnr > 60).all()
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert not any(m._forward_hooks for m in model.modules())
    assert all(p.grad is None for p in model.parameters())


def test_inference_mode_is_left_for_the_search():
    """Also for models and images that were made in it, which have no gradients."""
    for optimizer in ALL:
        options = {"at": "first", "optimizer": optimizer, "steps": 5}
        expected = invert(Linear(spread(5)), IMAGES, **options)
        with torch.inference_mode():
            for model, images in (Linear(spread(5)), IMAGES), (Linear(spread(5) + 0), IMAGES + 0):
                assert torch.equal(invert(model, images, **options).image, expected.image)


def test_lbfgs_rests_in_a_minimum_that_is_not_the_target():
    model = Function(lambda x: x**4 + torch.tensor([1.0, 3.0]).double())
    target = torch.zeros(1, 2).double()
    found = invert(model, target=target, start=target + 2, steps=5000)
    assert nearest(found).item() == pytest.approx(10**0.5) and found.evaluations < 400
    assert found.image.abs().max() < 0.1


@pytest.mark.parametrize("optimizer", ["gd", "adam"])
def test_divergence_stops_with_a_clear_message(optimizer):
    with pytest.raises(Diverged, match=r"image 0 went from [\d.]+ to .* take a smaller step_size"):
        of_linear(Q, optimizer=optimizer, step_size=1e9, steps=50)


@pytest.mark.parametrize("optimizer", ALL)
def test_a_start_from_which_no_way_leads_is_said_to_be_the_reason(optimizer):
    # Flat at zero for its first number, infinitely steep there for the second.
    roots = Function(lambda x: torch.stack([x[:, 0] ** 2, x[:, 1].abs().sqrt()], 1))
    target = torch.ones(2, 2).double()
    options = {"target": target, "optimizer": optimizer, "steps": 3}
    for bad, kind, said in (
        (0.0, ValueError, "distance of image 1 does not depend .* take another start"),
        (1e200, Diverged, "distance of image 1 is (inf|nan) where it starts"),
    ):
        start = torch.tensor([[2.0, 1.0], [bad, 1.0]], dtype=torch.float64)
        with pytest.raises(kind, match=said):
            invert(roots, start=start, **options)
    with pytest.raises(Diverged, match="image 1 .* or its slope not finite: take another start"):
        invert(roots, start=torch.tensor([[2.0, 2.0], [2.0, 0.0]]).double(), **options)
