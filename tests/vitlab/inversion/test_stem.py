"""A convolutional stem undone, on small ones with known answers."""

import math

import pytest
import torch

from minivit.parts import ConvStem
from tests.parity import draw, random
from tests.vitlab.inversion.test_residual import relative
from vitlab.inversion import hidden_directions
from vitlab.inversion.stem import StemInverse, line


def stem(dim, seed):
    torch.manual_seed(seed)
    made = draw(ConvStem(4, dim, channels=1)).double().eval().requires_grad_(False)
    for norm in made.layers[1], made.layers[4]:
        norm.running_mean, norm.running_var = random(2, len(norm.weight), seed=seed).square() + 0.1
    return made


def test_the_line_of_a_relu_is_that_of_a_least_squares_fit():
    mean, spread = torch.tensor([[-1.5, 0.2, 2.0, -4.0], [0.5, 1.0, 0.7, 0.5]]).double()
    z = torch.linspace(-9, 9, 20_001, dtype=torch.double)[:, None]
    weight = (-z.square() / 2).exp() / math.sqrt(2 * math.pi) * (z[1] - z[0])
    y = (mean + spread * z).relu()
    expected = (weight * y).sum(0)
    slope = (weight * z * y).sum(0) / spread
    missed = (weight * (y - expected - slope * spread * z).square()).sum(0)
    for found, right in zip(line(mean, spread), (slope, expected, missed), strict=True):
        assert (found - right).abs().max() < 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_an_image_comes_back_from_afar_where_no_direction_is_hidden(seed):
    whole, image = stem(128, seed), random(1, 1, 12, 12, seed=seed)
    assert not len(hidden_directions(whole, image))
    start = image + 0.3 * random(*image.shape, seed=seed + 9)
    inverse, eye = StemInverse(whole, (12, 12)), torch.eye(144).double()
    target = inverse.before(whole(image))
    rounding = 1e-8 * target.amax() * random(*target.shape, seed=seed)  # where there were zeros
    for wrong, most in (0, 1e-9), (rounding, 1e-5):
        assert relative(inverse(target + wrong, start, 0.09 * eye), image) < most
    with pytest.raises(ValueError, match="expected a stem for patches of 4 x 4: got 9 layers"):
        StemInverse(ConvStem(8, 128, channels=1), (16, 16))
