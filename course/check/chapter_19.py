"""Chapter 19: waves in feature maps, what attention does to them, noise in a band, two cues."""

import torch
from torch import Tensor

from course.check.attempt import Attempt, Draw, normal_draws
from course.check.exercise import exercise


@exercise("rings", seed=0)
def ring_means(attempt: Attempt, normal: Draw) -> None:
    """maps [batch, channels, rows, columns], ring [rows, columns] -> [rings]."""
    batch, channels, rows, columns = 2, 3, 5, 6
    maps = normal(batch, channels, rows, columns) + 2
    down, across = torch.arange(rows), torch.arange(columns)
    sizes = torch.fft.fft2(maps).abs()
    ring = torch.minimum(down, rows - down)[:, None] + torch.minimum(across, columns - across)
    logs = sizes.log().mean((0, 1))

    def rings(values: Tensor, mean=Tensor.mean) -> Tensor:
        means = torch.stack([mean(values[ring == k]) for k in range(6)])
        return means - means[0]

    outcomes = {
        rings(logs): "For random maps the value of a ring is wrong.",
        rings(logs) + logs[0, 0]: "Nothing is subtracted: subtract the value of ring 0, the "
        "constant wave.",
        rings(sizes.mean((0, 1)).log()): "The logarithm is taken of the mean amplitude. Take it of "
        "each wave of each map, then the mean.",
        rings(sizes.mean((0, 1)), lambda ring: ring.mean().log()): "The logarithm is taken of the "
        "mean over a ring. Take it of each wave first.",
        rings(sizes.mean((0, 1))): "No logarithm is taken.",
        rings(2 * logs): "These are logarithms of squares: take the size of a wave, not its power.",
        rings(logs, Tensor.sum): "The waves of a ring are added up. A larger ring has more of "
        "them: take the mean.",
        rings(torch.fft.fftshift(logs)): "The transform has its constant wave at the corner, as "
        "the rings have: do not shift it.",
    }
    attempt.expect_close(attempt(maps, ring), outcomes)


@exercise("waves", seed=1)
def gains(attempt: Attempt, normal: Draw) -> None:
    """matrix [n, n], waves [n, m], complex -> [m]."""
    n, m = 5, 3
    matrix = normal(n, n).softmax(1)
    waves = torch.complex(normal(n, m), normal(n, m))
    after, turned = (table.to(waves) @ waves for table in (matrix, matrix.T))
    size, before = after.norm(dim=0), waves.norm(dim=0)
    outcomes = {
        size / before: "For random weights and waves of different sizes a gain is wrong.",
        after.norm(dim=1) / waves.norm(dim=1): "A wave is a column.",
        size: "The waves' own sizes are not 1: divide by them.",
        (size / before).square(): "These are squares of sizes.",
        turned.norm(dim=0) / before: "The matrix is transposed. Row i holds what token i attends "
        "to.",
        after.real.norm(dim=0) / waves.real.norm(dim=0): "Only the real part counts. The size of a "
        "complex number is that of both its parts.",
        before / size: "The gain is upside down: the size after over the size before.",
    }
    attempt.expect_close(attempt(matrix, waves), outcomes)


@exercise("batch, channels, height, width", seed=2)
def noise_in_band(attempt: Attempt, normal: Draw) -> None:
    """white [batch, channels, height, width], keep [height, width], power -> like white."""
    white = normal(2, 3, 6, 8)
    white *= torch.tensor([1.0, 3.0])[:, None, None, None]
    radius = torch.hypot(torch.fft.fftfreq(6)[:, None], torch.fft.fftfreq(8))
    keep, power = (radius > 0.15) & (radius < 0.35), 0.04

    def passed(x: Tensor, keep: Tensor = keep) -> Tensor:
        return torch.fft.ifft2(torch.fft.fft2(x).where(keep, 0)).real

    def scaled(x: Tensor, over: tuple[int, ...], strength: float = power**0.5) -> Tensor:
        return strength * x / x.square().mean(over, keepdim=True).sqrt()

    rest, each = passed(white), (1, 2, 3)
    outcomes = {
        scaled(rest, each): "The noise is wrong.",
        rest: "The noise has the right waves, and its power is not changed.",
        passed(scaled(white, each)): "The power of white noise is set before the band is cut out. "
        "Set it after.",
        scaled(rest, (0, 1, 2, 3)): "All images together have the power. Each image should.",
        scaled(rest, (2, 3)): "Each channel has the power. An image as a whole should, with "
        "channels that differ.",
        scaled(rest, each, power): "Power is a mean square: the factor is its root.",
        scaled(passed(white, ~keep), each): "The waves outside the band are kept.",
        scaled(rest, each) ** 2 / rest: "The factor is the root of this ratio of powers.",
        scaled(white, each): "All waves are kept.",
    }
    attempt.expect_close(attempt(white, keep, power), outcomes)


@exercise("bins")
def half_diagonal(attempt: Attempt) -> None:
    """logs [n, n], ordered as fft2's -> [n / 2, rounded up]."""
    for n, count in ((8, 4), (7, 4)):
        logs = normal_draws(seed=n)(n, n)
        line = torch.stack([logs[i, i] for i in range(count)])
        middle = torch.stack([logs[i, i] for i in range(n // 2, n)])
        outcomes = {
            line - line[0]: f"For {n} x {n} waves a bin is wrong.",
            line: "Nothing is subtracted: subtract the value of the constant wave.",
            middle - middle[0]: "This is the second half of the diagonal, as after a shift. Here "
            "the constant wave comes first.",
            line[: n // 2] - line[0]: "The last bin is missing: k goes up to below n / 2.",
            logs.diagonal() - line[0]: "This is the whole diagonal. Leave out its second half.",
            logs[0, :count] - logs[0, 0]: "This is the first row. The diagonal has as many cycles "
            "down as across.",
        }
        attempt.expect_close(attempt(logs), outcomes)


@exercise()
def shape_share(attempt: Attempt) -> None:
    """answers, shapes, textures [batch] -> one number."""
    shapes = torch.tensor([0, 3, 5, 4, 2, 1, 0, 2, 4, 3])
    textures = torch.tensor([1, 0, 2, 1, 5, 3, 4, 2, 4, 3])
    answers = torch.tensor([0, 3, 5, 1, 0, 4, 2, 2, 4, 1])
    outcomes = {
        3 / 4: "Of ten images three show no conflict; of the others 3 are answered by shape, 1 by "
        "texture and 3 by neither.",
        5 / 8: "Images whose cues agree count on both sides. Leave them out.",
        5 / 6: "Images whose cues agree count as decided by shape. Leave them out.",
        3 / 7: "Answers by neither cue are in the denominator. Leave them out.",
        3 / 10: "The denominator has all images. It should have those decided by either cue.",
        1 / 4: "This is the share of texture.",
        3.0: "This is shape over texture. Divide by both together.",
    }
    attempt.expect_close(attempt(answers, shapes, textures), outcomes)
