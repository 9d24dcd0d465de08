"""Chapter 16: how many steps descent takes, and a block without some of its parts."""

import itertools
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from course.check.attempt import Attempt, Draw, NotYet, Outcomes, normal_draws
from course.check.chapter_04 import PARTS
from course.check.chapter_12 import matrix
from course.check.exercise import exercise


@exercise()
def steps_for(attempt: Attempt) -> None:
    """values [n], share -> one number."""

    def expect(
        values: list[float], share: float, otherwise: str, mistakes: Mapping[int, str] = {}
    ) -> None:
        found = attempt(torch.tensor(values), share).item()
        for number, message in mistakes.items():
            attempt.expect(found != number, message)
        slow = 1 - (min(values) / max(values)) ** 2
        steps = next(n for n in itertools.count(1) if slow**n <= share)
        attempt.expect(found == steps, f"{otherwise} You found {found:g}, expected {steps}.")

    # 0.75 ** 8 = 0.1001, 0.75 ** 9 = 0.075
    nine = "For the values 2 and 1 a step leaves 3/4 of the slower error; a tenth is left after "
    mistakes = {
        1: "You take the direction of the largest value. The smallest is the slowest.",
        8: "After 8 steps a little more than the share is left. Round up.",
        4: "The ratio of the values has to be squared.",
        3: "The error shrinks by 1 minus the squared ratio, not by the squared ratio.",
    }
    expect([2.0, 1.0], 0.1, f"{nine}the ninth.", mistakes)
    last = {6: "You take the last value for the smallest. They may come in any order."}
    expect([1.0, 3.0, 2.0], 0.05, "The values come in any order.", last)
    expect([40.0, 1.0], 0.5, "With a condition number of 40, half the error takes long.")
    expect([20.0, 10.0], 0.1, "The values count relative to the largest: 20 and 10 are as 2 and 1.")
    none = {0: "At 0 steps nothing has happened: all of the error is left."}
    expect([2.0, 2.0], 0.5, "Where all values are equal one step ends it.", none)


class Map:
    """A matrix with given singular values, that counts its products."""

    def __init__(self, out: int, values: Tensor, seed: int) -> None:
        self.matrix, self.right = matrix(values.tolist(), out, len(values), seed)
        self.pushes = self.pulls = 0

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


@exercise()
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
    for number, mistake in (
        (9.0, "This is the square of the largest singular value."),
        (0.5, "This is the smallest singular value."),
        (1.0, "This is 1, the length of a unit vector. How long does push make it?"),
        (3.0**0.5, "This is the root of the largest singular value."),
    ):
        attempt.expect(abs(found - number) > 1e-3, mistake)
    said = f"For singular values of 3, 2, 1 and 0.5 and 30 steps you found {found:.4g}, expected 3."
    attempt.expect(abs(found - 3) < 1e-3, said)
    for scale in (1e3, 1e-3):
        found, _ = tried(scale * values, 100)
        message = f"With a largest value of {3 * scale:g} and 100 steps you found {found:.4g}."
        attempt.expect(abs(found / scale - 3) < 1e-3, message)
    found, _ = tried(values, 30, scale=100.0)
    attempt.expect(abs(found - 3) < 1e-3, "The result depends on how long start is.")
    found, one = tried(values, 2)
    start = normal_draws(seed=3)(4)
    start = one.matrix.T @ (one.matrix @ start)
    start = start / start.norm()
    least = (one.matrix.T @ (one.matrix @ start)).norm().sqrt().item()
    attempt.expect(
        least * 0.9999 <= found <= 3.0003,
        f"After two steps the estimate should be {least:.4f} at least, and 3 at most: you found "
        f"{found:.4f}. Are all steps taken?",
    )


@exercise()
def recovered_fast(attempt: Attempt) -> None:
    """target [out], push, pull, steps -> [n]."""
    n, steps = 400, 150
    enough = 0.02  # fraction of the error in any direction, with a condition number of 30

    def tried(smallest: float, scale: float) -> Tensor:
        """What is left of the error in every direction, as a fraction, [n]."""
        one = Map(500, scale * torch.linspace(1, smallest, n), seed=4)
        x = one.right.T @ torch.ones(n)  # as much in every direction
        found = attempt(one.matrix @ x, one.push, one.pull, steps, shape=dict(n=n))
        one.expect_few(attempt, steps)
        return (one.right @ (found - x)).abs()

    left = tried(smallest=0.5, scale=1.0)
    said = f"With a condition number of 2 the worst direction keeps {left.max():.2g} of its error."
    attempt.expect((left < enough).all(), said)
    left = tried(smallest=1 / 30, scale=1.0)
    attempt.expect(
        not 0.5 < left.max() <= 1.001,
        f"With a condition number of 30 the faintest direction keeps {left.max():.2g} of its "
        "error: as slow as descent, which remembers nothing of its last step.",
    )
    said = f"With a condition number of 30 the worst direction keeps {left.max():.2g} of its error."
    attempt.expect((left < enough).all(), said)
    left = tried(smallest=1 / 30, scale=50.0)
    attempt.expect(
        (left < enough).all(),
        f"With all singular values times 50 the error is {left.max():.2g}: your step has a fixed "
        "length. It must follow from the products.",
    )


@exercise("batch, tokens, dim", seed=0)
def block_without(attempt: Attempt, normal: Draw) -> None:
    """x [batch, tokens, dim], missing, norm1, attention, norm2, mlp -> as x."""
    x = normal(2, 3, 5)
    norm1, attention, norm2, mlp = PARTS

    alone = attention(norm1(x))
    y, first = x + alone, x + attention(x)
    whole = y + mlp(norm2(y))

    def expect(missing: str, expected: Tensor, mistakes: Outcomes) -> None:
        outcomes = {expected: f"With missing={missing!r} the result is wrong."}
        if missing != "nothing":
            outcomes[whole] = "Nothing is missing: this is the whole block."
        attempt.expect_close(attempt(x, missing, *PARTS), outcomes | mistakes)

    mistakes = {
        y + mlp(norm2(x)): "The second step reads x, not what the first step made.",
        mlp(norm2(y)): "The second step lacks its residual connection.",
        norm2(norm1(first) + mlp(norm1(first))): "The norms come after the additions. Here they "
        "come before the parts.",
    }
    expect("nothing", whole, mistakes)
    mistakes = {
        x + norm1(x) + mlp(norm2(x + norm1(x))): "Without attention norm1 has no reader. You add "
        "its output.",
        norm1(x) + mlp(norm2(norm1(x))): "You put norm1 in the stream. Without attention the first "
        "step is the identity.",
        2 * x + mlp(norm2(2 * x)): "Attention gives nothing, but x is added to itself.",
    }
    expect("attention", x + mlp(norm2(x)), mistakes)
    mistakes = {
        y + norm2(y): "Without MLP norm2 has no reader. You add its output.",
        norm2(y): "You put norm2 in the stream. Without MLP the second step is the identity.",
    }
    expect("mlp", y, mistakes)
    mistakes = {
        first + mlp(norm2(first)): "norm1 is gone, norm2 is still there.",
        y + mlp(y): "norm2 is gone, norm1 is still there.",
    }
    expect("norm", first + mlp(first), mistakes)
    mistakes = {
        mlp(norm2(y)): "The first residual connection is still there.",
        alone + mlp(norm2(alone)): "The second residual connection is still there.",
        mlp(x): "The MLP reads x, and what attention gave is dropped.",
    }
    expect("residual", mlp(norm2(alone)), mistakes)


def linear(out: int) -> nn.Linear:
    """Reads 4 features. Its numbers are still to be drawn, so that the random state stays."""
    return nn.utils.skip_init(nn.Linear, 4, out)


class Wired(nn.Module):
    """Linear maps, and a function of the input and of them that gives the output."""

    def __init__(self, wire: Callable[..., Tensor], *outs: int) -> None:
        super().__init__()
        self.wire, self.maps = wire, nn.ModuleList(map(linear, outs))

    def forward(self, x: Tensor) -> Tensor:
        return self.wire(x, *self.maps)


@exercise(seed=1)
def unused_numbers(attempt: Attempt, normal: Draw) -> None:
    """x [batch, dim], module -> one number."""
    x = normal(2, 4)
    dark = x * torch.tensor([1.0, 1.0, 0.0, 1.0])  # the third feature is 0
    messages = {
        "used": "These are the numbers that are used. Count the others.",
        "tensors": "You count tensors. A tensor of shape [5, 4] has 20 numbers.",
        "none": "A parameter that is not in the graph has no gradient at all, None: it counts.",
        "only_none": "A layer may be in the graph and still have no influence: its gradient is 0.",
        "sums": "You differentiate the plain sum of the outputs. Two entries that move against "
        "each other cancel in it: weigh them with random numbers.",
        "zero": "You weigh the outputs with themselves. Where they are 0 nothing is seen.",
        "whole": "You count a tensor only if all of its gradient is 0. Count its entries.",
        "last": "You look at one entry of the batch. A number counts as used if any depends on it.",
    }

    def expect(x: Tensor, module: nn.Module, number: int, otherwise: str, **mistakes: int) -> None:
        for parameter in module.parameters():
            parameter.data = normal(*parameter.shape)
        found = attempt(x, module).item()
        if any(p.grad is not None for p in module.parameters()):
            raise NotYet(
                "Gradients are left in the module's parameters. torch.autograd.grad returns them "
                "and leaves none."
            )
        for mistake, wrong in mistakes.items():
            if found == wrong != number:
                raise NotYet(messages[mistake])
        attempt.expect(found == number, f"{otherwise} You found {found:g}, expected {number}.")

    expect(x, linear(3), 0, "A linear layer uses all of its 15 numbers.", used=15)
    message = "A layer with 25 numbers is never called, another with 15 is used."
    expect(x, Wired(lambda x, used, idle: used(x), 3, 5), 25, message, used=15, tensors=2, none=0)
    message = "A layer with 25 numbers is called, and multiplied by 0."
    dropped = Wired(lambda x, used, idle: used(x) + 0 * idle(x).sum(), 3, 5)
    expect(x, dropped, 25, message, tensors=2, only_none=0)
    message = "The output is a linear map and its negative; all 15 numbers count."
    expect(x, Wired(lambda x, f: torch.cat([f(x), -f(x)], 1), 3), 0, message, sums=15)
    message = "An output may be 0 and still change with all 15 numbers."
    expect(x, Wired(lambda x, f: f(x) - f(x).detach(), 3), 0, message, zero=15)
    said = "One feature of x is 0 in the whole batch: the 3 weights that read it have no influence."
    expect(dark, linear(3), 3, said, whole=0)
    message = "The second image of the batch is 0, the first is not: all 15 numbers count."
    expect(x * torch.tensor([[1.0], [0.0]]), linear(3), 0, message, last=12)
