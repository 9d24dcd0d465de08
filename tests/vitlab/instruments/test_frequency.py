"""Waves of known amplitude, Park and Kim's bins, bands, and waves through known parts."""

import math

import pytest
import torch

import vitlab
from tests.parity import random
from tests.vitlab.instruments.models import Scaled, images
from tests.vitlab.instruments.test_filters import wave
from vitlab.instruments.frequency import frequencies, rings


def test_a_wave_has_its_amplitude_where_it_belongs_and_none_elsewhere():
    found = vitlab.log_amplitude((3 + 2 * wave(6, 8, 1, 2))[None, None]).values.exp()
    known = torch.full((6, 8), 1e-6, dtype=torch.float64)
    known[0, 0] += 3 * 48
    known[1, 2] += 48  # a cosine is two waves of half its amplitude
    known[5, 6] += 48
    torch.testing.assert_close(found, known, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("side", [7, 8, 14])
def test_the_diagonal_has_park_and_kims_bins(side):
    x = random(3, 5, side, side)
    # Their notebook's steps, in their order: log, shift, mean, diagonal, its second half, less DC.
    logs = (torch.fft.fft2(x).abs() + 1e-6).log()
    shifted = torch.fft.fftshift(logs, dim=(2, 3)).mean((0, 1))
    half = shifted.diag()[side // 2 :]
    torch.testing.assert_close(vitlab.log_amplitude(x).diagonal, half - half[0])
    assert len(half) == math.ceil(side / 2)


def test_rings_hold_every_wave_once_by_its_nearest_whole_frequency():
    ring, apart = rings((8, 8)), frequencies((8, 8)) * 8
    assert (ring - apart).abs().max() <= 0.5
    whole = [round(math.hypot(u, v)) for u in range(-4, 4) for v in range(-4, 4)]
    counts = [whole.count(k) for k in range(7)]
    assert ring.flatten().long().bincount().tolist() == counts
    assert rings((4, 6))[0].tolist() == [0, 1, 1, 2, 1, 1]  # cycles along the shorter side


def test_radial_high_and_tilt_are_means_over_waves():
    found = vitlab.log_amplitude(random(4, 3, 8, 6))
    relative, apart = found.values - found.values[0, 0], frequencies((8, 6))
    rows = [relative[rings((8, 6)) == k].mean() for k in range(len(found.radial))]
    torch.testing.assert_close(found.radial, torch.stack(rows))
    fast, slow = apart >= 0.25, (apart > 0) & (apart < 0.25)
    torch.testing.assert_close(found.high, relative[fast].mean())
    torch.testing.assert_close(found.tilt, relative[fast].mean() - relative[slow].mean())


def test_the_stream_of_known_branches():
    model = Scaled(0.5, 0.5)
    found = vitlab.stream_frequencies(model, images(3), grid=(3, 4), batch_size=2)
    assert list(found) == ["parts.0"]  # the last sum goes into no module
    one = found["parts.0"]
    for part, factor in ((one.branch, 0.5), (one.sum, 1.5)):
        known = one.skip.values + math.log(factor)
        torch.testing.assert_close(part.values, known, atol=1e-4, rtol=0)


@pytest.mark.parametrize("size", [16, (24, 32), (15, 21)])
def test_noise_has_the_stated_power_and_none_out_of_its_band(size):
    low, high = 0.125, 0.25
    noise = vitlab.band_noise(4, 3, size, low, high, power=0.04, seed=1).double()
    power = noise.square().mean((1, 2, 3))
    torch.testing.assert_close(power, torch.full((4,), 0.04).double(), rtol=1e-6, atol=0)
    waves = torch.fft.fft2(noise).abs()
    apart = frequencies(tuple(noise.shape[2:]))
    inside = (apart >= low) & (apart < high)
    assert waves[..., ~inside].max() < 1e-4 * waves[..., inside].mean()
    assert (waves[..., inside] > 0).all()


@pytest.mark.parametrize("cutoff", [0.05, 0.25, 0.4])
def test_low_and_high_pass_together_are_the_image(cutoff):
    x = images(2, (24, 32))
    both = vitlab.low_pass(x, cutoff) + vitlab.high_pass(x, cutoff)
    torch.testing.assert_close(both, x, atol=1e-6, rtol=0)
    assert vitlab.high_pass(x, cutoff).mean((2, 3)).abs().max() < 1e-6
    torch.testing.assert_close(vitlab.low_pass(x, cutoff).mean((2, 3)), x.mean((2, 3)))
    edge = wave(16, 16, 0, 4)[None, None]  # 0.25 cycles a pixel belong to the band above
    torch.testing.assert_close(vitlab.band_pass(edge, 0.25, 0.3), edge)
    torch.testing.assert_close(vitlab.low_pass(edge, 0.25), 0 * edge, atol=1e-6, rtol=0)
