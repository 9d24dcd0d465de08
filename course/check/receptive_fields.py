"""Exercises of chapter 06 about receptive fields.

What is expected comes from sets of pixels and loops, never from a formula of the chapter.
"""

import torch

from course.check.attempt import Attempt, close
from course.check.exercise import exercise

CHAPTER = "06_convolution"


def seen(layers: list[list[int]], i: int) -> set[int]:
    """The pixels that output i depends on, collected layer by layer from above."""
    wanted = {i}
    for kernel, stride, padding in reversed(layers):
        wanted = {o * stride - padding + tap for o in wanted for tap in range(kernel)}
    return wanted


@exercise(CHAPTER)
def layers_needed(attempt: Attempt) -> None:
    """kernels [cases] and fields [cases] in pixels -> whole numbers of layers."""
    kernels, fields = [3, 5, 7, 3, 5, 7, 5], [121, 25, 13, 120, 22, 20, 1]
    inputs = torch.tensor(kernels).double(), torch.tensor(fields).double()
    result = attempt(*inputs, shape=dict(cases=len(fields)))
    exact, nothing = slice(3), slice(6, 7)  # the last layer adds no more than is needed; no layer
    expected = torch.tensor(
        [
            float(next(n for n in range(field) if len(seen([[kernel, 1, 0]] * n, 0)) >= field))
            for kernel, field in zip(kernels, fields, strict=True)
        ]
    )
    attempt.expect(
        not close(result, (inputs[1] / inputs[0]).ceil()),
        "You divide by the filter's width, as if fields of neighbours did not overlap. By how many "
        "pixels does a layer widen the field?",
    )
    attempt.expect_close(
        result[nothing],
        expected[nothing],
        "Without any layer a pixel sees itself: a field of 1 needs no layer.",
    )
    attempt.expect_close(
        result[exact],
        expected[exact],
        "Fields of 121, 25 and 13 pixels are met exactly by filters of 3, 5 and 7.",
        mistakes={
            "One layer too many where the field is met exactly: round up, and no further.": (
                expected[exact] + 1
            )
        },
    )
    attempt.expect(
        close(result, result.round()), "A number of layers is whole: round, and the right way."
    )
    attempt.expect_close(
        result,
        expected,
        "With one layer less the field is too small, with one more it is wider than it need be.",
        mistakes={
            "You round down: the field of so many layers is too small.": (
                (inputs[1] - 1) / (inputs[0] - 1)
            ).floor()
        },
    )


@exercise(CHAPTER)
def first_and_last(attempt: Attempt) -> None:
    """layers [layers, 3], i -> the first and the last pixel, [2]."""

    def ends(layers: list[list[int]], i: int) -> list[int]:
        return [min(seen(layers, i)), max(seen(layers, i))]

    def described(layers: list[list[int]], i: int) -> tuple[list[int], str]:
        given = attempt(torch.tensor(layers).double(), i, shape=dict(ends=2))
        found = [round(end, 4) for end in given.tolist()]
        said = f"For layers {layers} (filter, stride, padding) and i = {i} you give {found}"
        return found, f"{said}, expected {ends(layers, i)}."

    found, case = described([[5, 1, 0]], 4)
    attempt.expect(
        found != [4, 9], f"{case} A filter of 5 reads 5 pixels: the last is kernel - 1 further on."
    )
    attempt.expect(
        found != [2, 6],
        f"{case} Without padding, output 0 begins at pixel 0: the filter is not centred on i.",
    )
    attempt.expect(found == [4, 8], f"{case} Stride 1 and no padding: it reads pixels i and on.")

    found, case = described([[3, 1, 1]], 4)
    attempt.expect(
        found == [3, 5], f"{case} Padding puts pixels in front, so that all counts move down by it."
    )
    found, case = described([[3, 2, 0]], 4)
    attempt.expect(
        found == [8, 10], f"{case} Output i begins stride * i pixels after the first output."
    )

    lower, upper = [7, 3, 2], [3, 2, 1]
    found, case = described([lower, upper], 5)
    attempt.expect(
        found != ends([upper, lower], 5),
        f"{case} Begin with the highest layer: its outputs are what i counts. The lowest is first "
        "in the list.",
    )
    attempt.expect(
        found == ends([lower, upper], 5),
        f"{case} Both ends of the interval go down through every layer; the last end gets "
        "kernel - 1 more in each.",
    )
    for layers, i in (([[3, 1, 1], [5, 2, 2], [2, 4, 0], [3, 1, 3]], 6), ([[4, 2, 3]], 0)):
        found, case = described(layers, i)
        attempt.expect(
            found == ends(layers, i), f"{case} Negative numbers, in the padding, stay as they are."
        )
