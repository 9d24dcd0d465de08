"""Chapter 6: convolutions as tables, as linear maps and as attention, and receptive fields."""

import itertools
from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from course.check.attempt import Attempt, Draw, close
from course.check.exercise import exercise


def table_of(kernel: Tensor, rows: int, columns: int) -> Tensor:
    """The table of a convolution, one entry after the other."""
    table, half = torch.zeros(rows, columns, rows, columns), len(kernel) // 2
    for r, s, i, j in itertools.product(*map(range, (rows, columns, *kernel.shape))):
        down, right = r + i - half, s + j - half
        if 0 <= down < rows and 0 <= right < columns:
            table[r, s, down, right] = kernel[i, j]
    return table.view(rows * columns, -1)


@exercise("places, neighbours", seed=2)
def convolution_table(attempt: Attempt, normal: Draw) -> None:
    """kernel [k, k], rows, columns -> [rows * columns, rows * columns]."""
    rows, columns = 4, 5
    middle = torch.zeros(3, 3)
    middle[1, 1] = 1.0
    said = "For a kernel that is 1 in its middle and 0 elsewhere, the table should be the identity."
    fewer = torch.diag((torch.arange(20) < 17).double())  # r * rows + s is 16 at most
    outcomes = {torch.eye(20): said, fewer: "Location r, s has the number r * columns + s."}
    attempt.expect_close(attempt(middle, rows, columns), outcomes)
    right, below = torch.zeros(3, 3), torch.zeros(3, 3)
    right[1, 2] = below[2, 1] = 1.0
    places = torch.arange(20).view(rows, columns)
    for kernel, where, number, axis, step in (
        (right, "to the right", "[1, 2]", 1, 1),
        (below, "below", "[2, 1]", 0, columns),
    ):
        outcomes = {
            table_of(kernel, rows, columns): f"For a kernel that is 1 at {number} alone, every "
            f"token should read its neighbour {where}, and zero where there is none.",
            table_of(kernel.flip(0, 1), rows, columns): "The neighbours lie on the wrong side: the "
            "table is transposed, or the kernel is flipped. F.conv2d does not flip it.",
            table_of(kernel.T, rows, columns): "Rows and columns of the kernel are swapped.",
            torch.eye(20)[places.roll(-1, axis).flatten()]: "At the edges the tokens read from the "
            "opposite side. There should be zeros.",
            torch.ones(20 - step).diag(step): "At the end of a row the tokens read from the next "
            "row. There should be zeros.",
        }
        attempt.expect_close(attempt(kernel, rows, columns), outcomes)
    kernel = normal(5, 5)
    message = "For a kernel of 5 x 5, larger than the grid of 2 x 4, the table is wrong."
    attempt.expect_close(attempt(kernel, 2, 4), {table_of(kernel, 2, 4): message})


def seen(layers: list[list[int]], i: int) -> set[int]:
    """The pixels that output i depends on, collected layer by layer from above."""
    wanted = {i}
    for kernel, stride, padding in reversed(layers):
        wanted = {o * stride - padding + tap for o in wanted for tap in range(kernel)}
    return wanted


@exercise()
def layers_needed(attempt: Attempt) -> None:
    """kernels [cases] and fields [cases] in pixels -> whole numbers of layers."""
    kernels, fields = [3, 5, 7, 3, 5, 7, 5], [121, 25, 13, 120, 22, 20, 1]
    inputs = torch.tensor(kernels).double(), torch.tensor(fields).double()
    result = attempt(*inputs, shape=dict(cases=len(fields)))
    exact, nothing = slice(3), slice(6, 7)  # the last layer adds no more than is needed; no layer
    cases = zip(kernels, fields, strict=True)
    least = [next(n for n in range(f) if len(seen([[k, 1, 0]] * n, 0)) >= f) for k, f in cases]
    expected = torch.tensor(least).double()
    attempt.expect(
        not close(result, (inputs[1] / inputs[0]).ceil()),
        "You divide by the filter's width, as if fields of neighbours did not overlap. By how many "
        "pixels does a layer widen the field?",
    )
    message = "Without any layer a pixel sees itself: a field of 1 needs no layer."
    attempt.expect_close(result[nothing], {expected[nothing]: message})
    outcomes = {
        expected[exact]: "Fields of 121, 25 and 13 pixels are met exactly by filters of 3, 5, 7.",
        ((inputs[1] - 1) / inputs[0]).ceil()[exact]: "A layer widens by kernel - 1, not kernel.",
        expected[exact] + 1: "One layer too many where the field is met exactly: only round up.",
    }
    attempt.expect_close(result[exact], outcomes)
    message = "A number of layers is whole: round, and the right way."
    attempt.expect(close(result, result.round()), message)
    outcomes = {
        expected: "With one layer less the field is too small, with one more wider than need be.",
        ((inputs[1] - 1) / (inputs[0] - 1)).floor(): "You round down: the field is too small.",
    }
    attempt.expect_close(result, outcomes)


@exercise()
def first_and_last(attempt: Attempt) -> None:
    """layers [layers, 3], i -> the first and the last pixel, [2]."""

    def ends(layers: list[list[int]], i: int) -> list[int]:
        return [min(seen(layers, i)), max(seen(layers, i))]

    def expect(
        layers: list[list[int]], i: int, otherwise: str, wrong: Mapping[str, list[int]] = {}
    ) -> None:
        given = attempt(torch.tensor(layers).double(), i, shape=dict(ends=2))
        found, right = [round(end, 4) for end in given.tolist()], ends(layers, i)
        said = f"For layers {layers} (filter, stride, padding) and i = {i} you give {found}"
        for message, mistake in wrong.items():
            attempt.expect(found != mistake, f"{said}, expected {right}. {message}")
        attempt.expect(found == right, f"{said}, expected {right}. {otherwise}")

    wrong = {
        "A filter of 5 reads 5 pixels: the last is kernel - 1 further on.": [4, 9],
        "Without padding, output 0 begins at pixel 0: the filter is not centred on i.": [2, 6],
    }
    expect([[5, 1, 0]], 4, "Stride 1 and no padding: it reads pixels i and on.", wrong)
    expect([[3, 1, 1]], 4, "Padding puts pixels in front, so that all counts move down by it.")
    expect([[3, 2, 0]], 4, "Output i begins stride * i pixels after the first output.")
    lower, upper = [7, 3, 2], [3, 2, 1]
    wrong = {
        "Begin with the highest layer: its outputs are what i counts. The lowest is first in the "
        "list.": ends([upper, lower], 5)
    }
    message = "Both ends go down through every layer; the last end gets kernel - 1 more in each."
    expect([lower, upper], 5, message, wrong)
    for layers, i in (([[3, 1, 1], [5, 2, 2], [2, 4, 0], [3, 1, 3]], 6), ([[4, 2, 3]], 0)):
        expect(layers, i, "Negative numbers, in the padding, stay as they are.")


@exercise("out, channels, rows, columns", seed=0)
def merged_kernel(attempt: Attempt, normal: Draw) -> None:
    """w3 [channels, channels, 3, 3], w1 [channels, channels, 1, 1] -> as w3."""
    channels = 4
    w3, w1 = normal(channels, channels, 3, 3), normal(channels, channels, 1, 1)

    def spread(matrix: Tensor) -> Tensor:
        """A [channels, channels] matrix in the middle of 3 x 3 filters."""
        return F.pad(matrix[:, :, None, None], (1, 1, 1, 1))

    one = w1[:, :, 0, 0]
    same = torch.eye(channels)
    outcomes = {
        w3 + spread(one) + spread(same): "The filters do not give conv3x3(x) + conv1x1(x) + x.",
        w3 + spread(one): "The path without weights is missing: x itself is added, too.",
        w3 + spread(same): "The 1 x 1 convolution is missing.",
        w3 + w1 + spread(same): "The 1 x 1 convolution is added at all nine offsets. It reads the "
        "middle one only.",
        w3 + spread(one + 1): "1 is added for every pair of channels. The identity gives each "
        "channel itself alone: its matrix has zeros beside the diagonal.",
        w3 + spread(one.T) + spread(same): "The 1 x 1 filter is transposed: axis 0 is the output.",
        spread(one) + spread(same): "The 3 x 3 filters are missing.",
    }
    attempt.expect_close(attempt(w3, w1), outcomes)


@exercise("batch, out, rows, columns", seed=1)
def circular_by_fourier(attempt: Attempt, normal: Draw) -> None:
    """x [batch, channels, rows, columns], weight [out, channels, side, side] -> a map."""
    batch, channels, out, rows, columns = 2, 3, 4, 8, 6
    x = normal(batch, channels, rows, columns)
    for side in (3, 5):
        weight = normal(out, channels, side, side)
        result = attempt(x, weight)
        half = side // 2
        around = F.pad(x, (half,) * 4, mode="circular")
        expected = F.conv2d(around, weight)
        flipped = F.conv2d(around, weight.flip((-2, -1)))
        off = [expected.roll((by, by), (-2, -1)) for by in (half, -half, 2 * half, -2 * half)]
        turned = [flipped.roll((by, by), (-2, -1)) for by in (0, half, -half)]
        scaled = [expected / (rows * columns), expected * (rows * columns)]
        mistakes = {
            "The result is shifted by half of the filter, or all of it. Its middle belongs at "
            "position (0, 0), not its corner: roll it up and to the left.": off,
            "The filter is flipped: this sums x_j w_{i-j}. Take the complex conjugate of the "
            "filter's transform.": turned,
            "The result is off by a factor rows * columns: the inverse transform divides by "
            "it.": scaled,
        }
        for message, results in mistakes.items():
            attempt.expect(not any(close(result, wrong) for wrong in results), message)
        outcomes = {
            expected: "At each frequency the output's channels are a matrix [out, channels] times "
            "the input's channels.",
            F.conv2d(x, weight, padding=half): "Zeros are around the image. It should wrap around.",
        }
        attempt.expect_close(result, outcomes)


@exercise("batch, tokens, out", seed=2)
def convolution_by_attention(attempt: Attempt, normal: Draw) -> None:
    """x [batch, tokens, dim], weight [out, dim, 3, 3], grid, sharpness -> tokens."""
    batch, dim, out, grid = 2, 3, 4, (5, 6)
    tokens = grid[0] * grid[1]
    x, weight = normal(batch, tokens, dim), normal(out, dim, 3, 3)

    def convolved(weight: Tensor, mode: str = "replicate") -> Tensor:
        padded = F.pad(x.mT.unflatten(2, grid), (1, 1, 1, 1), mode=mode)
        return F.conv2d(padded, weight).flatten(2).mT

    result = attempt(x, weight, grid, 50.0, shape=dict(batch=batch, tokens=tokens, out=out))
    inside = F.pad(torch.ones(grid[0] - 2, grid[1] - 2), (1, 1, 1, 1)).flatten() > 0
    attempt.expect(
        not close(result[:, inside], convolved(weight.flip((-2, -1)))[:, inside]),
        "The offsets have the wrong sign: weight[:, :, 0, 0] belongs to the neighbour above and to "
        "the left, at p_i + (-1, -1).",
    )
    message = "Rows and columns of the filter are swapped: its first axis is the row."
    attempt.expect(not close(result[:, inside], convolved(weight.mT)[:, inside]), message)
    message = "Inside the grid, with a sharpness of 50, it should be a 3 x 3 convolution."
    right = convolved(weight)[:, inside]
    outcomes = {right: message, right / 9: "You take the mean over the heads. Add them up."}
    attempt.expect_close(result[:, inside], outcomes)
    attempt.expect(
        not close(result, convolved(weight, "constant")),
        "Beyond the border you have zeros. But a softmax always gives its weights away: without a "
        "mask, the token nearest to the missing position gets them.",
    )
    attempt.expect(
        not close(result, convolved(weight, "circular")),
        "Your grid wraps around. A position beyond the border has its own coordinates, such as -1.",
    )
    message = "At the border the token nearest to the missing position counts."
    attempt.expect_close(result, {convolved(weight): message})
    outcomes = {
        nine_heads(x, weight, grid, 0.3, power=2): "It is right for a sharpness of 50 and wrong "
        "for 0.3, where a head attends to several.",
        nine_heads(x, weight, grid, 0.3, power=1): "The distance is not squared in the scores.",
        convolved(weight): "Weights are hard: each head takes the nearest token. Use a softmax.",
        nine_heads(x, weight, grid, 0.3 / dim**0.5, power=2): "The scores are divided, as by a "
        "square root of a width. They have no scale but the sharpness.",
    }
    attempt.expect_close(attempt(x, weight, grid, 0.3), outcomes)


def nine_heads(x: Tensor, weight: Tensor, grid: tuple, sharpness: float, power: int) -> Tensor:
    """The exercise's formula, head by head."""
    places = torch.cartesian_prod(*map(torch.arange, grid))
    result = torch.zeros(len(x), len(places), len(weight))
    for row, column in itertools.product(range(3), range(3)):
        aims = places + torch.tensor([row - 1, column - 1])
        distances = (aims[:, None] - places).double().norm(dim=-1)
        result += (-sharpness * distances**power).softmax(1) @ x @ weight[:, :, row, column].T
    return result
