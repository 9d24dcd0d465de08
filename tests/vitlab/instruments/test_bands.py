"""Noise and images in a band: their power, their waves, and that two bands make a whole."""

import pytest
import torch

from tests.refusals import assert_refused
from tests.vitlab.instruments.models import images
from vitlab.instruments import band_noise, band_pass, high_pass, low_pass
from vitlab.instruments.frequency import frequencies


@pytest.mark.parametrize("size", [16, (24, 32), (15, 21)])
def test_noise_has_the_stated_power_and_none_out_of_its_band(size):
    low, high = 0.125, 0.25
    noise = band_noise(4, 3, size, low, high, power=0.04, seed=1).double()
    power = noise.square().mean((1, 2, 3))
    torch.testing.assert_close(power, torch.full((4,), 0.04).double(), rtol=1e-6, atol=0)
    waves = torch.fft.fft2(noise).abs()
    apart = frequencies(tuple(noise.shape[2:]))
    inside = (apart >= low) & (apart < high)
    assert waves[..., ~inside].max() < 1e-4 * waves[..., inside].mean()
    assert (waves[..., inside] > 0).all()


def test_noise_is_a_function_of_its_seed():
    one = band_noise(2, 1, 16, 0.1, 0.3, seed=3)
    assert torch.equal(one, band_noise(2, 1, 16, 0.1, 0.3, seed=3))
    assert not torch.equal(one, band_noise(2, 1, 16, 0.1, 0.3, seed=4))


@pytest.mark.parametrize("cutoff", [0.05, 0.25, 0.4])
def test_low_and_high_pass_together_are_the_image(cutoff):
    x = images(2, (24, 32))
    torch.testing.assert_close(low_pass(x, cutoff) + high_pass(x, cutoff), x, atol=1e-6, rtol=0)
    assert high_pass(x, cutoff).mean((2, 3)).abs().max() < 1e-6
    torch.testing.assert_close(low_pass(x, cutoff).mean((2, 3)), x.mean((2, 3)))


def test_an_edge_belongs_to_the_band_above():
    r = torch.arange(16)
    wave = torch.cos(2 * torch.pi * 4 * r / 16).expand(16, 16)[None, None]  # 0.25 cycles a pixel
    torch.testing.assert_close(band_pass(wave, 0.25, 0.3), wave)
    torch.testing.assert_close(low_pass(wave, 0.25), torch.zeros_like(wave), atol=1e-6, rtol=0)


def test_what_is_no_band_is_refused():
    x = images()
    assert_refused([
        (lambda: band_pass(x, 0.3, 0.2), ValueError, "low < high"),
        (lambda: high_pass(x, 0.8), ValueError, "a wave between"),
        (lambda: band_noise(1, 1, 16, 0.01, 0.02), ValueError, "a wave between"),
    ])  # fmt: skip
