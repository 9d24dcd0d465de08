"""Exercises of chapter 16 about the parts of a block: one missing, and some that nothing reads.

The parts are simple functions that no two orders or places of give the same.
"""

import torch
from torch import Tensor, nn

from course.check.attempt import Attempt, NotYet, normal_draws
from course.check.exercise import exercise

CHAPTER = "16_taking_the_encoder_apart"


def parts() -> tuple:
    """norm1, attention, norm2, mlp: maps of tokens, none of which commutes with another."""
    return (
        lambda x: 2 * x - 1,
        lambda x: x.cumsum(1).sin(),
        lambda x: 0.5 * x + 3,
        lambda x: x.square().cos(),
    )


@exercise(CHAPTER)
def block_without(attempt: Attempt) -> None:
    """x [batch, tokens, dim], missing, norm1, attention, norm2, mlp -> as x."""
    shape = dict(batch=2, tokens=3, dim=5)
    x = normal_draws(seed=0)(*shape.values())
    norm1, attention, norm2, mlp = parts()

    def mixed(x: Tensor) -> Tensor:
        return x + attention(norm1(x))

    whole = mixed(x) + mlp(norm2(mixed(x)))
    alone = attention(norm1(x))

    def expect(missing: str, expected: Tensor, mistakes: dict[str, Tensor]) -> None:
        if missing != "nothing":
            mistakes = {"Nothing is missing: this is the whole block.": whole} | mistakes
        result = attempt(x, missing, *parts(), shape=shape)
        attempt.expect_close(
            result, expected, f"With missing={missing!r} the result is wrong.", mistakes
        )

    expect(
        "nothing",
        whole,
        {
            "The second step reads x, not what the first step made.": mixed(x) + mlp(norm2(x)),
            "The second step lacks its residual connection.": mlp(norm2(mixed(x))),
            "The norms stand behind the additions. Here they stand before the parts.": norm2(
                norm1(x + attention(x)) + mlp(norm1(x + attention(x)))
            ),
        },
    )
    expect(
        "attention",
        x + mlp(norm2(x)),
        {
            "Without attention norm1 has no reader. You add its output.": (
                x + norm1(x) + mlp(norm2(x + norm1(x)))
            ),
            "You put norm1 in the stream. Without attention the first step is the identity.": (
                norm1(x) + mlp(norm2(norm1(x)))
            ),
            "Attention gives nothing, but x is added to itself.": 2 * x + mlp(norm2(2 * x)),
        },
    )
    expect(
        "mlp",
        mixed(x),
        {
            "Without MLP norm2 has no reader. You add its output.": mixed(x) + norm2(mixed(x)),
            "You put norm2 in the stream. Without MLP the second step is the identity.": norm2(
                mixed(x)
            ),
        },
    )
    first = x + attention(x)
    expect(
        "norm",
        first + mlp(first),
        {
            "norm1 is gone, norm2 is still there.": first + mlp(norm2(first)),
            "norm2 is gone, norm1 is still there.": mixed(x) + mlp(mixed(x)),
        },
    )
    expect(
        "residual",
        mlp(norm2(alone)),
        {
            "The first residual connection is still there.": mlp(norm2(mixed(x))),
            "The second residual connection is still there.": alone + mlp(norm2(alone)),
            "The MLP reads x, and what attention gave is dropped.": mlp(x),
        },
    )


def linear(out: int) -> nn.Linear:
    """Reads 4 features. Its numbers are still to be drawn, so that the random state stays."""
    return nn.utils.skip_init(nn.Linear, 4, out)


class Mirrored(nn.Module):
    """A linear map, and its negative beside it: the entries of the output add up to nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.map = linear(3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.map(x), -self.map(x)], 1)


class Idle(nn.Module):
    """A linear map, and one that is computed and dropped."""

    def __init__(self, dropped: bool) -> None:
        super().__init__()
        self.map, self.idle = linear(3), linear(5)
        self.dropped = dropped

    def forward(self, x: Tensor) -> Tensor:
        idle = 0 * self.idle(x).sum() if self.dropped else 0
        return self.map(x) + idle


class Balanced(nn.Module):
    """A linear map whose output is 0 here and nowhere else."""

    def __init__(self) -> None:
        super().__init__()
        self.map = linear(3)

    def forward(self, x: Tensor) -> Tensor:
        return self.map(x) - self.map(x).detach()


@exercise(CHAPTER)
def unused_numbers(attempt: Attempt) -> None:
    """x [batch, dim], module -> one number."""
    draw = normal_draws(seed=1)
    x = draw(2, 4)
    dark = x * torch.tensor([1.0, 1.0, 0.0, 1.0])  # the third feature is 0

    def expect(x: Tensor, module: nn.Module, number: int, otherwise: str, **mistakes: int) -> None:
        for parameter in module.parameters():
            parameter.data = draw(*parameter.shape)
        found = attempt(x, module).item()
        if any(p.grad is not None for p in module.parameters()):
            raise NotYet(
                "Gradients are left in the module's parameters. torch.autograd.grad returns them "
                "and leaves none."
            )
        for message, wrong in mistakes.items():
            if found == wrong != number:
                raise NotYet(MISTAKES[message])
        attempt.expect(found == number, f"{otherwise} You found {found:g}, expected {number}.")

    expect(x, linear(3), 0, "A linear layer uses all of its 15 numbers.", used=15)
    expect(
        x,
        Idle(dropped=False),
        25,
        "A layer with 25 numbers is never called, another with 15 is used.",
        used=15,
        tensors=2,
        none=0,
    )
    expect(x, Idle(dropped=True), 25, "A layer with 25 numbers is called, and multiplied by 0.",
           tensors=2, only_none=0)  # fmt: skip
    expect(x, Mirrored(), 0, "The output is a linear map and its negative; all 15 numbers count.",
           sums=15)  # fmt: skip
    expect(x, Balanced(), 0, "An output may be 0 and still change with all 15 numbers.", zero=15)
    expect(
        dark,
        linear(3),
        3,
        "One feature of x is 0 in the whole batch: the 3 weights that read it have no influence.",
        whole=0,
    )
    expect(
        x * torch.tensor([[1.0], [0.0]]),
        linear(3),
        0,
        "The second picture of the batch is 0, the first is not: all 15 numbers count.",
        last=12,
    )


MISTAKES = {
    "used": "These are the numbers that are used. Count the others.",
    "tensors": "You count tensors. A tensor of shape [5, 4] has 20 numbers.",
    "none": "A parameter that is not in the graph has no gradient at all, None: it counts.",
    "only_none": "A layer may be in the graph and still have no influence: its gradient is 0.",
    "sums": "You differentiate the plain sum of the outputs. Two entries that move against each "
    "other cancel in it: weigh them with random numbers.",
    "zero": "You weigh the outputs with themselves. Where they are 0 nothing is seen.",
    "whole": "You count a tensor only if all of its gradient is 0. Count its entries.",
    "last": "You look at one entry of the batch. A number counts as used if any depends on it.",
}
