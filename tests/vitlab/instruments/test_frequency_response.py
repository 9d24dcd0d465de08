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


ALL = torch.ones(GRID, dtype=torch.float64)
CONSTANT = torch.zeros(GRID, dtype=torch.float64)
CONSTANT[0, 0] = 1  # the wave that is constant, and no other
TO_ONE = torch.zeros(12, 12)
TO_ONE[:, 5] = 1


@pytest.mark.parametrize(
    ("matrix", "gain", "same", "constant"),
    [
        pytest.param(torch.eye(12), ALL, ALL, CONSTANT, id="the identity keeps every wave"),
        pytest.param(torch.full((12, 12), 1 / 12), *[CONSTANT] * 3, id="uniform: the mean alone"),
        pytest.param(TO_ONE, ALL, CONSTANT, ALL, id="attending to one token: all become constant"),
    ],
)
def test_matrices_of_known_response(matrix, gain, same, constant):
    found = frequency_response(matrix, GRID)
    torch.testing.assert_close(found.gain, gain)
    torch.testing.assert_close(found.same, same, atol=1e-7, rtol=1e-7)
    torch.testing.assert_close(found.constant, constant)


def test_a_box_blur_has_its_transfer_function():
    grid = (6, 8)
    kernel = torch.zeros(grid, dtype=torch.float64)
    kernel[[[-1], [0], [1]], [-1, 0, 1]] = 1 / 9
    found = frequency_response(circulant(kernel), grid)
    cosines = [(1 + 2 * torch.cos(2 * math.pi * torch.fft.fftfreq(n).double())) / 3 for n in grid]
    known = torch.outer(*cosines).abs()
    torch.testing.assert_close(found.gain, known)
    torch.testing.assert_close(found.same, known)


def test_a_shift_keeps_waves_and_any_permutation_their_sizes():
    shift = torch.eye(12)[torch.arange(12).view(GRID).roll((1, 2), (0, 1)).flatten()]
    torch.testing.assert_close(frequency_response(shift, GRID).same, ALL)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(0))
    found = frequency_response(torch.eye(12)[order], GRID)
    torch.testing.assert_close(found.gain, ALL)
    assert found.same[1, 1] < 0.9


def test_no_wave_gains_by_rows_that_sum_to_one():
    found = frequency_response(torch.stack([positive(12, seed) for seed in range(20)]), GRID)
    assert found.gain.shape == (20, *GRID)
    torch.testing.assert_close(found.gain[:, 0, 0], torch.ones(20, dtype=torch.float64))
    assert found.gain.max() <= 1 + 1e-12
    assert (found.same <= found.gain + 1e-12).all()
    assert (found.constant <= found.gain + 1e-12).all()


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
