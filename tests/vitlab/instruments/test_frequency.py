"""Waves of known amplitude, bands, and what smoothing matrices and known parts do to waves."""

import math

import pytest
import torch

import minivit
import vitlab
from tests.parity import random
from tests.vitlab.instruments.models import GRID, HEADS, MODELS, Known, Scaled, everybodys, images
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
    assert ring.flatten().long().bincount().tolist() == [whole.count(k) for k in range(7)]
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
    found = vitlab.stream_frequencies(Scaled(0.5, 0.5), images(3), grid=(3, 4), batch_size=2)
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


N = 12


def test_gaussian_smoothing_goes_from_the_identity_to_the_mean():
    eye, mean = torch.eye(N).double(), torch.full((N, N), 1 / N, dtype=torch.float64)
    assert torch.equal(vitlab.gaussian_smoothing(GRID, 0), eye)
    torch.testing.assert_close(vitlab.gaussian_smoothing(GRID, 0.05), eye)
    torch.testing.assert_close(vitlab.gaussian_smoothing(GRID, 1e4), mean)
    torch.testing.assert_close(vitlab.gaussian_smoothing(GRID, math.inf), mean, rtol=1e-15, atol=0)
    found = vitlab.gaussian_smoothing(GRID, 0.7)
    torch.testing.assert_close(found.sum(1), torch.ones(N).double())
    # From patch (1, 1), number 5: to (0, 3), number 3, five away squared, to (1, 2) one.
    known = math.exp(-(5 - 1) / (2 * 0.7**2))
    assert (found[5, 3] / found[5, 6]).item() == pytest.approx(known)


@pytest.mark.parametrize("name", MODELS)
def test_patches_of_everybodys_models_are_averaged_by_fixed_weights(name):
    model, pictures, grid = everybodys(name)
    block, attention, extra = MODELS[name][1], MODELS[name][2], MODELS[name][3]
    names = [f"{block.format(i)}.{attention}.weights" for i in range(2)]
    n = grid[0] * grid[1]
    fixed = torch.stack([vitlab.gaussian_smoothing(grid, w) for w in (0, 1.0, math.inf)])
    replaced = vitlab.between_patches(model, pictures, fixed)
    with torch.no_grad():
        plain = model(pictures)
        with minivit.record(model, names[0]) as seen:
            model(pictures)
            own = seen[names[0]].clone()
        with minivit.replace(model, replaced), minivit.record(model, *names) as seen:
            model(pictures)
        for weights in seen.values():
            between = weights[:, :, extra:, extra:]
            torch.testing.assert_close(between, fixed.float().expand(2, HEADS, n, n))
            assert not weights[:, :, extra:, :extra].any()
        torch.testing.assert_close(seen[names[0]][:, :, :extra], own[:, :, :extra])
        with minivit.replace(model, vitlab.between_patches(model, pictures, torch.eye(n))):
            pass_through = model(pictures)
    found = [getattr(x, "logits", x) for x in (plain, pass_through, model(pictures))]
    assert torch.equal(found[0], found[2]) and not torch.allclose(found[0], found[1])


@pytest.mark.parametrize("name", ["minivit class", "timm", "huggingface"])
def test_the_mean_over_images_of_a_models_own_attention(name):
    model, pictures, _ = everybodys(name)
    names = [f"{MODELS[name][1].format(i)}.{MODELS[name][2]}.weights" for i in range(2)]
    found = vitlab.mean_attention(model, pictures, batch_size=1)
    with torch.no_grad(), minivit.record(model, *names) as seen:
        model(pictures)
    for mean, weights in zip(found.values(), seen.values(), strict=True):
        torch.testing.assert_close(mean, weights.double().mean(0, True), rtol=1e-5, atol=1e-7)
    with torch.no_grad(), minivit.replace(model, found), minivit.record(model, *names) as put:
        model(pictures)
    for mean, weights in zip(found.values(), put.values(), strict=True):
        torch.testing.assert_close(weights, mean.float().expand_as(weights))


def test_matrices_of_known_response():
    every = torch.ones(GRID, dtype=torch.float64)
    constant = torch.zeros(GRID, dtype=torch.float64)
    constant[0, 0] = 1  # the wave that is constant, and no other
    eye = torch.eye(N)
    found = vitlab.frequency_response(eye[[5] * N], GRID)  # to one token: all become constant
    torch.testing.assert_close([found.gain, found.same], [every, constant], atol=1e-7, rtol=1e-7)
    shift = eye[torch.arange(N).view(GRID).roll((1, 2), (0, 1)).flatten()]
    torch.testing.assert_close(vitlab.frequency_response(shift, GRID).same, every)
    order = torch.randperm(N, generator=torch.Generator().manual_seed(0))
    found = vitlab.frequency_response(eye[order], GRID)  # a permutation keeps the sizes alone
    torch.testing.assert_close(found.gain, every)
    assert found.same[1, 1] < 0.9


def test_a_box_blur_has_its_transfer_function():
    grid = (6, 8)
    kernel = torch.zeros(grid, dtype=torch.float64)
    kernel[[[-1], [0], [1]], [-1, 0, 1]] = 1 / 9  # whose borders wrap around
    places = [(row, column) for row in range(6) for column in range(8)]
    circulant = torch.stack([kernel.roll(place, (0, 1)).flatten() for place in places])
    found = vitlab.frequency_response(circulant, grid)
    cosines = [(1 + 2 * torch.cos(2 * math.pi * torch.fft.fftfreq(n).double())) / 3 for n in grid]
    known = torch.outer(*cosines).abs()
    torch.testing.assert_close(found.gain, known)
    torch.testing.assert_close(found.same, known)


def test_known_attention_of_a_model_by_head():
    weights = torch.randn(2, N, N, generator=torch.Generator().manual_seed(0)).softmax(-1)
    found = vitlab.attention_response(Known(weights, weights.flip(0)), images(3), batch_size=2)
    assert list(found) == ["blocks.0", "blocks.1"]
    known = vitlab.frequency_response(weights, GRID)
    for name in "gain", "same":
        first, second = (getattr(found[block], name) for block in found)
        torch.testing.assert_close(first, getattr(known, name), atol=1e-6, rtol=0)
        torch.testing.assert_close(second, first.flip(0), atol=1e-6, rtol=0)
    model, pictures, grid = everybodys("timm")
    for found in vitlab.attention_response(model, pictures).values():  # other tokens do not count
        assert found.gain.shape == (HEADS, *grid)
        torch.testing.assert_close(found.gain[:, 0, 0], torch.ones(HEADS, dtype=torch.float64))
