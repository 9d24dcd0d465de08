"""The response of matrices whose effect on waves is known, and of attention in models."""

import math

import pytest
import torch

from tests.refusals import assert_refused
from tests.vitlab.instruments.models import GRID, HEADS, Known, everybodys, images
from vitlab.instruments import attention_response, frequency_response


def positive(n, seed=0):
    """A positive matrix whose rows sum to 1."""
    scores = torch.randn(n, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (3 * scores).softmax(1)


def circulant(kernel):
    """The matrix of a convolution whose borders wrap around: kernel [rows, columns] from place 0"""
    rows, columns = kernel.shape
    places = [(r, c) for r in range(rows) for c in range(columns)]
    return torch.stack([kernel.roll(p, (0, 1)).flatten() for p in places])


def ones(grid=GRID):
    return torch.ones(grid, dtype=torch.float64)


def only_constant(grid=GRID):
    known = torch.zeros(grid, dtype=torch.float64)
    known[0, 0] = 1
    return known


def test_the_identity_keeps_every_wave():
    found = frequency_response(torch.eye(12), GRID)
    torch.testing.assert_close(found.gain, ones())
    torch.testing.assert_close(found.same, ones())
    torch.testing.assert_close(found.constant, only_constant())


def test_uniform_attention_passes_the_mean_alone():
    found = frequency_response(torch.full((12, 12), 1 / 12), GRID)
    for part in (found.gain, found.same, found.constant):
        torch.testing.assert_close(part, only_constant())


def test_a_box_blur_has_its_transfer_function():
    grid = (6, 8)
    kernel = torch.zeros(grid, dtype=torch.float64)
    for r in (-1, 0, 1):
        for c in (-1, 0, 1):
            kernel[r, c] = 1 / 9
    found = frequency_response(circulant(kernel), grid)
    cosines = [(1 + 2 * torch.cos(2 * math.pi * torch.fft.fftfreq(n).double())) / 3 for n in grid]
    known = torch.outer(*cosines).abs()
    torch.testing.assert_close(found.gain, known)
    torch.testing.assert_close(found.same, known)


def test_a_shift_keeps_waves_and_any_permutation_their_sizes():
    shift = torch.eye(12)[torch.arange(12).view(GRID).roll((1, 2), (0, 1)).flatten()]
    torch.testing.assert_close(frequency_response(shift, GRID).same, ones())
    order = torch.randperm(12, generator=torch.Generator().manual_seed(0))
    found = frequency_response(torch.eye(12)[order], GRID)
    torch.testing.assert_close(found.gain, ones())
    assert found.same[1, 1] < 0.9


def test_a_permutation_may_turn_slow_waves_into_fast_ones():
    # Token j looks at 3 j: on a ring of 8 a wave of 1 cycle becomes one of 3, and the other way.
    matrix = torch.eye(8)[torch.arange(8) * 3 % 8]
    j = torch.arange(8)
    slow, fast = (torch.cos(2 * math.pi * k * j / 8) for k in (1, 3))
    torch.testing.assert_close(matrix @ slow, fast, atol=1e-6, rtol=0)
    found = frequency_response(matrix, (1, 8))
    torch.testing.assert_close(found.gain, ones((1, 8)))
    torch.testing.assert_close(found.same[0, 1], torch.zeros((), dtype=torch.float64))


def test_attending_to_one_token_turns_all_waves_into_the_constant():
    matrix = torch.zeros(12, 12)
    matrix[:, 5] = 1
    found = frequency_response(matrix, GRID)
    torch.testing.assert_close(found.gain, ones())
    torch.testing.assert_close(found.constant, ones())


def test_no_wave_gains_by_rows_that_sum_to_one():
    found = frequency_response(torch.stack([positive(12, seed) for seed in range(20)]), GRID)
    assert found.gain.shape == (20, *GRID)
    torch.testing.assert_close(found.gain[:, 0, 0], torch.ones(20, dtype=torch.float64))
    assert found.gain.max() <= 1 + 1e-12
    assert (found.same <= found.gain + 1e-12).all()
    assert (found.constant <= found.gain + 1e-12).all()


def test_powers_of_a_positive_matrix_converge_to_equal_rows():
    power = torch.linalg.matrix_power(positive(12), 400)
    torch.testing.assert_close(power, power[:1].expand(12, 12))
    values = torch.linalg.svdvals(power)
    assert values[1] < 1e-12 * values[0]
    found = frequency_response(power, GRID)
    torch.testing.assert_close(found.gain, found.constant, atol=1e-8, rtol=0)


def test_known_attention_of_a_model_by_head():
    weights = torch.stack([positive(12, seed) for seed in range(2)]).float()
    found = attention_response(Known(weights, weights.flip(0)), images(3), batch_size=2)
    assert list(found) == ["blocks.0", "blocks.1"]
    known = frequency_response(weights, GRID)
    for name in ("gain", "same", "constant"):
        torch.testing.assert_close(
            getattr(found["blocks.0"], name), getattr(known, name), atol=1e-6, rtol=0
        )
    torch.testing.assert_close(found["blocks.1"].gain, known.gain.flip(0), atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", ["minivit class", "torchvision", "timm", "huggingface"])
def test_other_tokens_do_not_count(name):
    model, pictures, grid = everybodys(name)
    for found in attention_response(model, pictures).values():
        assert found.gain.shape == (HEADS, *grid)
        torch.testing.assert_close(found.gain[:, 0, 0], torch.ones(HEADS, dtype=torch.float64))
        assert found.frequency.shape == grid


def test_matrices_of_another_grid_are_refused():
    assert_refused([
        (lambda: frequency_response(torch.eye(12), (3, 5)), ValueError, r"\[15, 15\]"),
        (lambda: frequency_response(torch.ones(12, 11), GRID), ValueError, "expected matrices"),
    ])  # fmt: skip
