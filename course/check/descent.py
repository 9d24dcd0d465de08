"""Exercises of chapter 16 about descent: how many steps, how long, and how to do with fewer.

The matrices have singular values chosen by hand.
"""

import torch
from torch import Tensor

from course.check.attempt import Attempt, normal_draws
from course.check.exercise import exercise

CHAPTER = "16_taking_the_encoder_apart"
ENOUGH = 0.02  # share of the error in any direction, after 150 steps with condition number 30


@exercise(CHAPTER)
def steps_for(attempt: Attempt) -> None:
    """values [n], share -> one number."""

    def expect(values: list[float], share: float, otherwise: str, **wrong: float) -> None:
        found = attempt(torch.tensor(values), share).item()
        for message, number in wrong.items():
            attempt.expect(found != number, STEPS[message])
        slow = 1 - (min(values) / max(values)) ** 2
        steps = 1
        while slow**steps > share:
            steps += 1
        attempt.expect(found == steps, f"{otherwise} You found {found:g}, expected {steps}.")

    # 0.75 ** 8 = 0.1001, 0.75 ** 9 = 0.075
    expect([2.0, 1.0], 0.1, "For the values 2 and 1 a step leaves 3/4 of the slower error; a tenth "
           "is left after the ninth.", first=1, down=8, unsquared=4, power=3)  # fmt: skip
    expect([1.0, 3.0, 2.0], 0.05, "The values come in any order.", order=6)
    expect([40.0, 1.0], 0.5, "With a condition number of 40, half the error takes long.")
    expect([20.0, 10.0], 0.1, "The values count relative to the largest: 20 and 10 are as 2 and 1.")
    expect([2.0, 2.0], 0.5, "Where all values are equal one step ends it.", none=0)


STEPS = {
    "first": "You take the direction of the largest value. The smallest is the slowest.",
    "down": "After 8 steps a little more than the share is left. Round up.",
    "unsquared": "The ratio of the values has to be squared.",
    "power": "The error shrinks by 1 less the squared ratio, not by the squared ratio.",
    "order": "You take the last value for the smallest. They may come in any order.",
    "none": "At 0 steps nothing has happened: all of the error is left.",
}


class Map:
    """A matrix with given singular values, that counts its products."""

    def __init__(self, out: int, values: Tensor, seed: int) -> None:
        normal = normal_draws(seed)
        n = len(values)
        left = torch.linalg.qr(normal(out, n).to(values))[0]
        self.right = torch.linalg.qr(normal(n, n).to(values))[0].T  # rows are singular vectors
        self.matrix, self.pushes, self.pulls = (left * values) @ self.right, 0, 0

    def push(self, v: Tensor) -> Tensor:
        self.pushes += 1
        return self.matrix @ v

    def pull(self, u: Tensor) -> Tensor:
        self.pulls += 1
        return self.matrix.T @ u

    def expect_few(self, attempt: Attempt, steps: int) -> None:
        attempt.expect(
            max(self.pushes, self.pulls) <= steps + 1,
            f"With steps = {steps} you called push {self.pushes} times and pull {self.pulls} "
            f"times. At most {steps + 1} each are allowed.",
        )


@exercise(CHAPTER)
def largest_value(attempt: Attempt) -> None:
    """start [n], push, pull, steps -> one number."""
    values = torch.tensor([3.0, 2.0, 1.0, 0.5])

    def tried(values: Tensor, steps: int, scale: float = 1.0) -> tuple[float, Map]:
        one = Map(6, values, seed=2)
        start = scale * normal_draws(seed=3)(4)
        infinite = (
            "The result contains NaN or infinity. The vector grows or shrinks with every product: "
            "make it a unit vector each time."
        )
        found = attempt(start, one.push, one.pull, steps, if_not_finite=infinite).item()
        one.expect_few(attempt, steps)
        return found, one

    found, _ = tried(values, 30)
    for number, message in (
        (9.0, "This is the square of the largest singular value."),
        (0.5, "This is the smallest singular value."),
        (1.0, "This is 1, the length of a unit vector. How long does push make it?"),
        (3.0**0.5, "This is the root of the largest singular value."),
    ):
        attempt.expect(abs(found - number) > 1e-3, message)
    attempt.expect(
        abs(found - 3) < 1e-3,
        f"For singular values of 3, 2, 1 and 0.5 and 30 steps you found {found:.4g}, expected 3.",
    )
    for scale in (1e3, 1e-3):
        found, _ = tried(scale * values, 100)
        attempt.expect(
            abs(found / scale - 3) < 1e-3,
            f"With a largest value of {3 * scale:g} and 100 steps you found {found:.4g}.",
        )
    found, _ = tried(values, 30, scale=100.0)
    attempt.expect(abs(found - 3) < 1e-3, "The result depends on how long start is.")
    found, one = tried(values, 2)
    start = normal_draws(seed=3)(4)
    for _ in range(1):
        start = one.matrix.T @ (one.matrix @ start)
        start = start / start.norm()
    least = (one.matrix.T @ (one.matrix @ start)).norm().sqrt().item()
    attempt.expect(
        least * 0.9999 <= found <= 3.0003,
        f"After two steps the estimate should be {least:.4f} at least, and 3 at most: you found "
        f"{found:.4f}. Are all steps taken?",
    )


@exercise(CHAPTER)
def recovered_fast(attempt: Attempt) -> None:
    """target [out], push, pull, steps -> [n]."""
    n, steps = 400, 150

    def tried(smallest: float, scale: float) -> Tensor:
        """What is left of the error in every direction, as a share, [n]."""
        values = scale * torch.linspace(1, smallest, n)
        one = Map(500, values, seed=4)
        x = one.right.T @ torch.ones(n)  # as much in every direction
        target = one.matrix @ x
        found = attempt(target, one.push, one.pull, steps, shape=dict(n=n))
        one.expect_few(attempt, steps)
        return (one.right @ (found - x)).abs()

    left = tried(smallest=0.5, scale=1.0)
    attempt.expect(
        bool((left < ENOUGH).all()),
        f"With a condition number of 2 the worst direction keeps {left.max():.2g} of its error.",
    )
    left = tried(smallest=1 / 30, scale=1.0)
    attempt.expect(
        not 0.5 < left.max() <= 1.001,
        f"With a condition number of 30 the faintest direction keeps {left.max():.2g} of its "
        "error: as slow as descent, which remembers nothing of its last step.",
    )
    attempt.expect(
        bool((left < ENOUGH).all()),
        f"With a condition number of 30 the worst direction keeps {left.max():.2g} of its error.",
    )
    left = tried(smallest=1 / 30, scale=50.0)
    attempt.expect(
        bool((left < ENOUGH).all()),
        f"With all singular values times 50 the error is {left.max():.2g}: your step has a fixed "
        "length. It must follow from the products.",
    )
