"""Chapter 10: CKA, positions read from similarities, and fits with each row left out."""

import torch
from torch import Tensor

from course.check.attempt import Attempt, Draw, Outcomes, normal_draws
from course.check.exercise import exercise
from course.check.memory import MemoryMeter


def aligned(x: Tensor, y: Tensor, *, over: int | None = 0) -> Tensor:
    """The cosine of two Gram matrices, [images, images] each, after centring over an axis."""
    sides = (x, y) if over is None else (t - t.mean(over, keepdim=True) for t in (x, y))
    k, h = (t @ t.T for t in sides)
    return (k * h).sum() / (k.norm() * h.norm())


@exercise(seed=0)
def feature_cka(attempt: Attempt, normal: Draw) -> None:
    """x [images, p], y [images, q] -> one number."""
    x = normal(9, 4)
    y = x @ normal(4, 6) + 2 * normal(9, 6)
    x, y = x - x.mean(0), y - y.mean(0)
    right = aligned(x, y)
    cross = (x.T @ y).norm()
    own = (x.T @ x).norm() * (y.T @ y).norm()
    outcomes = {
        right: "For features that are centred already the value is wrong.",
        aligned(x, y, over=1): "You subtract the mean of each image. Each feature must have mean 0 "
        "over the images.",
        cross / own: "The norm of the product of both is not squared.",
        right.sqrt(): "This is the root of CKA: square the norm of the product of both.",
        cross.square() / own.square(): "The norms in the denominator are squared too: now the "
        "value depends on the scale.",
        (cross / (x.norm() * y.norm())).square(): "The denominator has the norms of x and y. It "
        "should have those of x^T x and y^T y.",
    }
    attempt.expect_close(attempt(x, y), outcomes)
    for name, pair in ("y", (x, y + 3 + normal(6))), ("x", (x + 3 + normal(4), y)):
        outcomes = {
            right: f"With a number added to each feature of {name} the value changes. CKA centres "
            "both sides.",
            aligned(*(t - t.mean() for t in pair), over=None): "You subtract the mean of all "
            "numbers. Each feature has its own mean.",
        }
        attempt.expect_close(attempt(*pair), outcomes)
    many = normal(60, 5), normal(60, 3)
    found = attempt(*many, within=(meter := MemoryMeter(*many)))
    attempt.expect_close(found, {aligned(*many): "For 60 images the value is wrong."})
    attempt.expect(
        meter.largest < 60 * 60,
        "A matrix of all pairs of images is made. Multiply features with features: the products "
        "are [p, q], [p, p] and [q, q], however many images there are.",
    )


@exercise()
def place_error(attempt: Attempt) -> None:
    """table [rows, columns, rows, columns] -> one number."""
    rows, columns = 3, 5
    # Every token is most like the patch in row 1, column 4, so many steps away.
    pointing = normal_draws(seed=1)(rows, columns, rows, columns).clamp(-2, 2)
    pointing[:, :, 1, 4] += 9
    down, right = torch.arange(-1.0, rows - 1)[:, None].abs(), torch.arange(-4.0, columns - 4).abs()
    squares = down.square() + right.square()
    by_rows = torch.full((rows * columns,), 9 // rows * columns)  # the patch's number is 9

    def turned(table: Tensor) -> Outcomes:
        flat = table.reshape(rows * columns, -1)
        return {
            away(flat.argmax(0), columns): "You ask each patch for its token. The table's first "
            "two axes are the token's.",
            away(flat.argmin(1), columns): "You take the patch that is least like the token.",
            away(flat.abs().argmax(1), columns): "You take the largest size, whatever the sign. "
            "What is most unlike is not alike.",
        }

    outcomes = {
        squares.sqrt().mean(): "Where every token is most like the patch in row 1, column 4, of 3 "
        "rows and 5 columns, the mean distance is wrong.",
        (down + right).mean(): "You add steps along rows and columns. Take the straight line.",
        squares.mean(): "These are squares of distances.",
        squares.mean().sqrt(): "This is the root of the mean square: take the root for each token, "
        "then the mean.",
        away(by_rows, columns): "The number of the patch is turned into a row and a column by the "
        "number of rows. Patches are counted along a row: divide by the number of columns.",
        torch.tensor(14 / 15): "This counts tokens that miss, not how far they miss.",
        torch.arange(15.0).sub(9).abs().mean(): "This is the difference of the patches' numbers: "
        "the last of a row and the first of the next are no neighbours.",
    } | turned(pointing)
    attempt.expect_close(attempt(pointing), outcomes)
    table = normal_draws(seed=2)(rows, columns, rows, columns)
    outcomes = {
        away(table.flatten(2).flatten(0, 1).argmax(1), columns): "With another nearest patch for "
        "each token the mean distance is wrong."
    } | turned(table)
    attempt.expect_close(attempt(table), outcomes)
    own = torch.eye(rows * columns).view(rows, columns, rows, columns)
    message = "Where each token is most like its own patch it is 0."
    attempt.expect_close(attempt(own), {0.0: message})


def away(found: Tensor, columns: int) -> Tensor:
    """Mean distance of positions from those found for them, both counted along the rows."""
    here = torch.arange(len(found))
    down, right = found // columns - here // columns, found % columns - here % columns
    return (down.square() + right.square()).sqrt().mean()


@exercise(seed=3)
def streamed_cka(attempt: Attempt, normal: Draw) -> None:
    """x [images, p], y [images, q], batch -> one number."""
    x = normal(24, 3)
    y = x @ normal(3, 4) + normal(24, 4)
    x, y = x - x.mean(0), y - y.mean(0)
    outcomes = {
        aligned(x, y): "For a single batch, centred already, it is the CKA of that batch.",
        aligned(x, y).sqrt(): "This is the root of CKA.",
    }
    empty = "The result contains NaN or infinity: the only batch, which is not full, is left out."
    attempt.expect_close(attempt(x, y, 30, if_not_finite=empty), outcomes)
    message = (
        "A number added to all features of a side changes nothing: subtract the means, and from a "
        "sum of products those of the sums, divided by the number of images."
    )
    attempt.expect_close(attempt(x + 2, y - 1, 30), {aligned(x, y): message})
    parts = list(zip(x.split(7), y.split(7), strict=True))
    within = [(a - a.mean(0), b - b.mean(0)) for a, b in parts]
    alone = torch.stack([aligned(a, b) for a, b in parts])
    sizes = torch.tensor([7.0, 7.0, 7.0, 3.0]) / 24
    uneven = [t - torch.stack([part.mean(0) for part in t.split(7)]).mean(0) for t in (x, y)]
    outcomes = {
        aligned(x, y): "In batches of 7, 7, 7, 3 images the value must be that of all 24 at once.",
        alone.mean(): "This is the mean of the batches' own values.",
        (sizes * alone).sum(): "This is the mean of the batches' own values, by size.",
        aligned(*(torch.cat(side) for side in zip(*within, strict=True))): "Each batch is centred "
        "by its own mean. It should be the mean of all images, which is known at the end.",
        alone[-1]: "This is only the last batch.",
        aligned(*uneven, over=None): "You take the mean of the batches' means. A larger batch "
        "counts for more.",
        aligned(x[:21], y[:21]): "The last batch is smaller than the others, and is left out.",
    }
    attempt.expect_close(attempt(x, y, 7), outcomes)
    a, b = normal(450, 3), normal(450, 2)
    found = attempt(a, b, 50, within=(meter := MemoryMeter(a, b)))
    attempt.expect_close(found, {aligned(a, b): "For nine batches the value is wrong."})
    attempt.expect(
        meter.largest < 450 * 2,
        f"A tensor of {meter.largest} numbers is made for 450 images in batches of 50. Keep "
        "sums: of the features, and of the products of features.",
    )


def fitted(x: Tensor, y: Tensor, penalty: float, at: Tensor) -> Tensor:
    """Ridge regression with a bias that has no penalty, and its predictions elsewhere."""
    u = x - x.mean(0)
    level = y.mean(0)
    system = u.T @ u + penalty * torch.eye(x.shape[1])
    return level + (at - x.mean(0)) @ torch.linalg.solve(system, u.T @ (y - level))


@exercise("n, targets", seed=4)
def left_out(attempt: Attempt, normal: Draw) -> None:
    """x [n, features], y [n, targets], penalty -> [n, targets]."""
    n, features, targets = 11, 4, 2
    x = normal(n, features)
    y = x @ normal(features, targets) + normal(n, targets)
    x, y = x - x.mean(0), y - y.mean(0)

    def others(x: Tensor, y: Tensor, penalty: float) -> Tensor:
        rows = [torch.arange(len(x)) != i for i in range(len(x))]
        return torch.cat([fitted(x[r], y[r], penalty, x[~r]) for r in rows])

    def leverage(x: Tensor, penalty: float) -> Tensor:  # what each target adds to its own fit
        return fitted(x, torch.eye(n), penalty, x).diagonal()[:, None]

    def mistakes(x: Tensor, y: Tensor, penalty: float) -> Outcomes:
        fit = fitted(x, y, penalty, x)
        h = leverage(x, penalty)
        return {
            fit: "This is the fit to all rows: each row has seen its own target.",
            (y - fit) / (1 - h): "These are errors of rows left out. Subtract them from targets.",
            y
            - (y - fit)
            / (1 - h + 1 / n): "The bias is fitted without the row as well: its part of "
            "the leverage, 1 / n, is missing.",
            y - (y - fit) * (1 - h): "The errors are multiplied by 1 - h. A row that is left out "
            "has a larger error: divide.",
            y - (y - fit) / (1 - h.mean()): "All rows get the mean leverage. Each has its own.",
        }

    outcomes = {
        others(x, y, 0.0): "Without a penalty, x and y centred, the predictions for rows left out "
        "are wrong."
    } | mistakes(x, y, 0.0)
    attempt.expect_close(attempt(x, y, 0.0), outcomes)
    outcomes = {
        others(x, y, 3.0): "With a penalty of 3 the predictions are wrong.",
        others(x, y, 0.0): "The penalty is not used.",
        others(x, y, 9.0): "The penalty is squared.",
        others(x, y, 3.0 * n): "The penalty is multiplied by the number of rows.",
        y - (y - fitted(x, y, 3.0, x)) / (1 - leverage(x, 0.0)): "The penalty shrinks the fit, but "
        "the leverage is that without one.",
    } | mistakes(x, y, 3.0)
    attempt.expect_close(attempt(x, y, 3.0), outcomes)
    moved = x + 2 * normal(features)
    level = y + 5
    outcomes = {
        others(moved, level, 3.0): "With features and targets that are not centred the predictions "
        "are wrong. The bias has no penalty: take the means away, and add the targets' mean at the "
        "end.",
        others(moved, y, 3.0): "The targets' mean is not added back.",
    }
    attempt.expect_close(attempt(moved, level, 3.0), outcomes)
