"""Chapter 8: filters as images, what they span and how they pair, and a table of positions."""

from itertools import permutations

import torch
import torch.nn.functional as F
from torch import Tensor

from course.check.attempt import Attempt, Draw, Outcomes, close, normal_draws
from course.check.exercise import exercise


@exercise("filters, channels, height, width", seed=0)
def on_one_scale(attempt: Attempt, normal: Draw) -> None:
    """filters [n, channels, height, width] -> from 0 to 1, one scale, 0 in the middle."""
    filters = normal(4, 3, 5, 2) + 0.3
    filters *= torch.tensor([0.1, 1.0, 3.0, 0.5])[:, None, None, None]
    for sign in (1, -1):  # the largest size is once of a positive, once of a negative weight
        x = sign * filters
        low, high = x.amin((1, 2, 3), True), x.amax((1, 2, 3), True)
        size = x.abs().amax((1, 2, 3), True)
        outcomes = {
            0.5 + 0.5 * x / size.max(): "The images are wrong.",
            (x - low) / (high - low): "Each filter has its own scale, from its smallest to its "
            "largest weight. Small ones look as strong as large ones.",
            0.5 + 0.5 * x / size: "Each filter has its own factor. Take one for all.",
            (x - x.min()) / (x.max() - x.min()): "The smallest weight of all becomes 0 and the "
            "largest 1, so that a weight of 0 is not in the middle.",
            0.5 + 0.5 * x / x.max(): "A weight of 0 becomes 0.5, but the factor is that of the "
            "largest weight. The size decides, whatever the sign.",
            x / size.max(): "A weight of 0 becomes 0. The range is 0 to 1 with 0.5 in the middle.",
        }
        attempt.expect_close(attempt(x), outcomes)
    message = "If all weights are 0 the result is not finite: 0 / 0."
    result = attempt(0 * filters, if_not_finite=message)
    attempt.expect_close(result, {0.5: "If all weights are 0, everything should be 0.5."})


@exercise("filters", seed=1)
def share_in_span(attempt: Attempt, normal: Draw) -> None:
    """filters [n, c, h, w], images [k, c, h, w] -> share of energy in the span, [n]."""
    n, k, c, h, w = 4, 3, 2, 3, 5
    directions = torch.linalg.qr(normal(c * h * w, c * h * w))[0].T.reshape(-1, c, h, w)
    inside = normal(n, k)
    filters = torch.einsum("nd,dchw->nchw", torch.cat([inside, normal(n, 5)], 1), directions[:8])
    energy = filters.square().sum((1, 2, 3))
    right = inside.square().sum(1) / energy
    outcomes = {
        right: "Already for orthonormal images the share is wrong.",
        right.sqrt(): "This is the ratio of the norms. The share is the ratio of their squares.",
        1 - right: "This is the share outside of the span.",
        inside.square().sum(1): "This is the energy inside. Divide by the filter's own.",
        inside.square().amax(1) / energy: "The share of the image that fits best is returned. The "
        "images together span more.",
    }
    attempt.expect_close(attempt(filters, directions[:k]), outcomes)
    skew = torch.einsum("kd,dchw->kchw", normal(k, k), directions[:k])
    outcomes = {
        right: "For images of other lengths and angles, with the same span, the share should be "
        "the same. Projections on images that are not orthogonal cannot be added."
    }
    attempt.expect_close(attempt(filters, skew), outcomes)
    # So long that rounding leaves about 0.1 of the singular value that should be zero.
    dependent = 1e15 * torch.cat([skew, skew[:1] - skew[1:2]])
    message = (
        "With an image that is the difference of two others the span is the same, but not the "
        "result. Leave out directions whose singular value is zero, up to rounding."
    )
    attempt.expect_close(attempt(filters, dependent, if_not_finite=message), {right: message})


@exercise(seed=2)
def matched_similarity(attempt: Attempt, normal: Draw) -> None:
    """a, b [n, c, h, w] -> the mean absolute cosine under the best pairing."""
    n, c, h, w = 5, 2, 3, 4
    a = normal(n, c, h, w) + 1  # with a mean that is not zero
    order, signs = torch.tensor([2, 0, 1, 4, 3]), torch.tensor([1.0, -1, 1, -1, -1])
    b = 3 * signs[:, None, None, None] * a[order]
    message = "The same filters in another order should have similarity 1."
    unit = F.normalize(a.flatten(1), dim=1)
    worst = -best(-(unit @ unit.T).abs())
    outcomes: Outcomes = {1.0: message, worst: "This is the worst pairing. Maximise."}
    attempt.expect_close(attempt(a, a[order]), outcomes)
    outcomes = {
        1.0: "The same filters in another order, some with the opposite sign and all three times "
        "as long, should have similarity 1. Take the absolute cosine."
    }
    attempt.expect_close(attempt(a, b), outcomes)
    base = F.normalize(normal(n, c * h * w), dim=1)
    for seed in range(3, 6):
        other = base[[0, 0, 1, 1, 2]] + 0.3 * normal_draws(seed)(n, c * h * w)
        cosines = (base @ F.normalize(other, dim=1).T).abs()  # [n, n]
        b, shaped = other.view(n, c, h, w), base.view(n, c, h, w)
        one, two = (F.normalize(each - each.mean(1, True), dim=1) for each in (base, other))
        result = attempt(shaped, b)
        attempt.expect(
            not close(result, greedy(cosines)) or close(result, best(cosines)),
            "The best pair was taken first, then the best of what was left. That need not be the "
            "best pairing of all.",
        )
        outcomes = {
            best(cosines): "The mean of the best pairing is wrong.",
            cosines.amax(1).mean(): "Each filter of a has its best partner, but several have the "
            "same one. Use each once.",
            cosines.amax(0).mean(): "Each filter of b has its best partner, but several have the "
            "same one. Use each once.",
            cosines.diagonal().mean(): "This pairs filters that stand at the same position.",
            best((one @ two.T).abs()): "The mean of each filter is subtracted first. The cosine is "
            "that of the filters as they are.",
            best(cosines) * n: "This is the sum over the pairs. Take the mean.",
        }
        attempt.expect_close(result, outcomes)


def best(cosines: Tensor) -> Tensor:
    """The largest mean of all one-to-one pairings, by trying them."""
    n = len(cosines)
    return max(cosines[range(n), p].mean() for p in map(list, permutations(range(n))))


def greedy(cosines: Tensor) -> Tensor:
    """The mean of pairs that are taken one by one, the best first."""
    left = cosines.clone()
    taken = []
    for _ in cosines:
        row, column = divmod(int(left.argmax()), len(left))
        taken.append(cosines[row, column])
        left[row] = left[:, column] = -1.0
    return torch.stack(taken).mean()


@exercise("rows, columns")
def cosine_by_offset(attempt: Attempt) -> None:
    """table [rows, columns, dim] -> mean cosine by offset [2 rows - 1, 2 columns - 1]."""
    for rows, columns, dim in ((3, 5, 6), (5, 2, 3)):
        table = normal_draws(seed=rows)(rows, columns, dim) + 0.5
        unit = F.normalize(table, dim=-1)
        sums, pairs = by_offset(unit), by_offset(torch.ones(rows, columns, 1))
        products = by_offset(table) / pairs
        middle = by_offset(F.normalize(table - table.mean((0, 1)), dim=-1)) / pairs
        down, across = (n - 1 + torch.arange(1 - n, n).abs() for n in (rows, columns))
        outcomes = {
            sums / pairs: "The mean cosine by offset is wrong.",
            products: "These are dot products. Divide by the lengths of both vectors.",
            sums: "These are sums over the pairs. An offset has as many pairs as fit on the grid: "
            "divide by their number.",
            sums / (rows * columns): "All offsets are divided by the number of positions. Divide "
            "each by its own number of pairs.",
            by_offset(unit, mode="circular") / (rows * columns): "Pairs are taken across the "
            "border, as if the grid were a ring.",
            (sums / pairs).flip(1): "The columns are mirrored: for offset (1, 1) compare with the "
            "position below and to the right.",
            (sums / pairs)[down][:, across]: "A negative offset has the value of the positive one.",
            middle: "The mean vector is subtracted first. Compare the vectors as they are.",
            (sums / pairs).roll((1 - rows, 1 - columns), (0, 1)): "The offset 0 is in the corner. "
            "It belongs in the middle, at [rows - 1, columns - 1].",
        }
        said = "The result contains NaN or infinity, though every offset has a pair of positions."
        attempt.expect_close(attempt(table, if_not_finite=said), outcomes)


def by_offset(table: Tensor, mode: str = "constant") -> Tensor:
    """Sums of dot products by offset: the table as an image, and as the filter that reads it."""
    image = table.movedim(-1, 0)[None]
    down, across = (n - 1 for n in table.shape[:2])
    return F.conv2d(F.pad(image, (across, across, down, down), mode=mode), image)[0, 0]
