"""Chapter 18: products with a Hessian, its sharpest direction, and how much of it is negative."""

import torch
from torch import Tensor

from course.check.attempt import Attempt, Draw, Outcomes, normal_draws
from course.check.exercise import exercise
from course.check.memory import MemoryMeter


@exercise("n", seed=0)
def hessian_product(attempt: Attempt, normal: Draw) -> None:
    """w [n], v [n], loss: [n] -> one number; gives [n]."""
    w, v, A = normal(5), normal(5), normal(5, 5)

    def loss(w: Tensor) -> Tensor:
        return w @ A @ w + w.pow(3).sum() + w[0] * w[1] * w[2]

    H = torch.func.hessian(loss)(w)
    slope = torch.func.grad(loss)(w)
    outcomes = {
        H @ v: "For five weights the product with the Hessian is wrong.",
        slope: "This is the gradient. Take its product with v, and differentiate that.",
        slope * v: "This is the gradient times v, entry by entry: one derivative too few.",
        H.diagonal() * v: "This is v times the Hessian's diagonal. Mixed derivatives count too.",
        H.sum(0): "This sums columns of the Hessian: v is not used, as if all its entries were 1.",
        v @ H @ v: "This is v^T H v, one number: v is multiplied twice.",
        H @ v / 2: "This is half of it.",
        -H @ v: "The sign is wrong.",
    }
    attempt.expect_close(attempt(w, v, loss), outcomes)
    outcomes = {
        H @ v: "For a vector v that is 100,000 times as long, the product is not 100,000 times as "
        "long. A difference of two gradients depends on the step; a derivative does not."
    }
    attempt.expect_close(attempt(w, 1e5 * v, loss) / 1e5, outcomes)
    flat = attempt(w, v, lambda w: (w * torch.arange(5.0)).sum() + 0 * w.pow(2).sum())
    attempt.expect_close(flat, {torch.zeros(5): "A loss that is a plane has the Hessian 0."})
    n = 300
    long, along = normal(n), normal(n)
    meter = MemoryMeter()
    found = attempt(long, along, lambda w: w.pow(4).sum() + w.sum().pow(2), within=meter)
    right = 12 * long.square() * along + 2 * along.sum()
    attempt.expect_close(found, {right: "For 300 weights the product is wrong."})
    attempt.expect(
        meter.largest < n * n,
        "A matrix of 300 x 300 is made. Never make the Hessian: differentiate the number "
        "gradient · v.",
    )


@exercise()
def sharpest(attempt: Attempt) -> None:
    """start [n], product: [n] -> [n], steps -> one number."""
    calls, Q = [0], torch.linalg.qr(normal_draws(seed=1)(6, 6)).Q

    def product_with(values: Tensor):
        """With a matrix of these eigenvalues."""

        def product(v: Tensor) -> Tensor:
            calls[0] += 1
            return Q @ (values * (Q.T @ v))

        return product

    start = normal_draws(seed=2)(6)
    downward = torch.tensor([-5.0, 2.5, 2.0, 1.0, -1.0, 0.5])
    outcomes = {
        -5.0: "Of a matrix with eigenvalues from -5 to 2.5 the one of largest size is wrong.",
        5.0: "The sign is lost: the length of a product is never negative. Take the product with "
        "the vector itself.",
        2.5: "This is the largest eigenvalue; that of largest size is below zero here.",
        25.0: "The square of the eigenvalue is returned.",
    }
    attempt.expect_close(attempt(start, product_with(downward), 60), outcomes)
    message = "More products with the matrix are taken than there are steps, and one to read off."
    attempt.expect(calls[0] <= 62, message)
    attempt.expect(calls[0] > 1, "No product with the matrix is taken.")
    said = "With large eigenvalues the vector overflows. Scale it to length 1 after each product."
    for scale in (1e9, 1e-9):
        large = product_with(scale * torch.tensor([3.0, 1.0, 0.5, 0.1, 0.0, -0.5]))
        found = attempt(start, large, 60, if_not_finite=said)
        message = f"With eigenvalues of the size of {scale:g} it fails."
        attempt.expect_close(found / scale, {3.0: message})
    message = "A longer start gives another value. Scale it to length 1."
    attempt.expect_close(attempt(100 * start, product_with(downward), 60), {-5.0: message})
    message = "After two steps the value is exact: another method than power iteration is at work."
    attempt.expect((attempt(start, product_with(downward), 2) + 5).abs() > 1e-6, message)


@exercise(seed=3)
def tridiagonal(attempt: Attempt, normal: Draw) -> None:
    """start [n], product: [n] -> [n], steps -> [steps, steps]."""
    n, k = 7, 4
    A, start = normal(n, n), normal(n)
    A = A + A.T

    # From an orthonormal basis of start, A start, A A start, ..., made by QR.
    columns = [torch.linalg.matrix_power(A, i) @ start for i in range(k)]
    Q = torch.linalg.qr(torch.stack(columns, 1)).Q
    T = (Q.T @ A @ Q).triu(-1).tril(1)
    right = torch.where(torch.eye(k, dtype=torch.bool), T, T.abs())
    found = attempt(start, lambda v: A @ v, k, shape={"steps": k, "steps ": k})
    attempt.expect(
        (found - found.triu(-1).tril(1)).abs().max() < 1e-6,
        "Entries beside the three middle diagonals are not zero: each new vector must be made "
        "orthogonal to all before it.",
    )
    outcomes: Outcomes = {
        right[0, 0]: "The first entry is wrong.",
        start @ A @ start: "The first entry is that of a start that is not scaled to length 1.",
    }
    attempt.expect_close(found[0, 0], outcomes)
    outcomes = {
        right.diagonal(1): "The entries above the diagonal are wrong: each is the length of what "
        "is left of a product when its parts along all earlier vectors are taken away.",
        0.0: "The entries above the diagonal are missing.",
    }
    attempt.expect_close(found.diagonal(1).abs(), outcomes)
    attempt.expect_close(found.diagonal(), {right.diagonal(): "The diagonal is wrong."})
    attempt.expect_close(found, {found.T: "The matrix is not symmetric."})
    whole = attempt(start, lambda v: A @ v, n, shape={"a": n, "b": n})
    message = "With as many steps as dimensions its eigenvalues are not those of the matrix."
    attempt.expect_close(torch.linalg.eigvalsh(whole), {torch.linalg.eigvalsh(A): message})
    wide = torch.cat([torch.tensor([1e4, -1e3]), torch.linspace(0.1, 1, 58)])
    turn = torch.linalg.qr(normal(60, 60)).Q
    B = turn @ torch.diag(wide) @ turn.T
    found = attempt(normal(60), lambda v: B @ v, 40, shape={"a": 40, "b": 40})
    attempt.expect(
        int((torch.linalg.eigvalsh(found) > 5e3).sum()) == 1,
        "An eigenvalue appears more than once after 40 steps: rounding. Make each new vector "
        "orthogonal to all before it, and do it twice.",
    )


@exercise(seed=4)
def negative_share(attempt: Attempt, normal: Draw) -> None:
    """T [steps, steps] -> one number."""
    T = torch.diag(normal(5)) + torch.diag(normal(4).abs(), 1)
    T = T + T.T
    points, vectors = torch.linalg.eigh(T)
    below = points < 0

    def share(weights: Tensor) -> Tensor:
        size = weights * points.abs()
        return size[below].sum() / size.sum()

    first = vectors[0].square()
    outcomes = {
        share(first): "Of a matrix of five rows the share is wrong.",
        share(torch.ones(5)): "All points count alike. Each has a weight: its vector's first "
        "number, squared.",
        share(vectors[0].abs()): "The weights are not squared.",
        share(vectors[:, 0].square()): "These are the numbers of the first vector. The weight of "
        "each point is the first number of its own vector: eigh gives vectors as columns.",
        first[below].sum(): "This is the share of eigenvalues below zero, large or small. Weigh "
        "each with its size.",
        below.double().mean(): "Eigenvalues are counted. Weigh each with its size.",
        1 - share(first): "This is the share of what is above zero.",
        (first * points)[below].sum().abs() / (first * points).sum().abs(): "The negative and the "
        "positive cancel below the line: take absolute values there.",
        -share(first): "The share is negative: take the size of what is below zero.",
        share(vectors[-1].square()): "The weight is the last number of each vector. It is the "
        "first that looks at the start.",
    }
    attempt.expect_close(attempt(T), outcomes)
    message = "Three times the matrix has another share. It should not."
    attempt.expect_close(attempt(3 * T), {share(first): message})
    up = torch.eye(3) * torch.tensor([0.2, 2, 3])
    attempt.expect_close(attempt(up), {0.0: "Where nothing is negative it is 0."})
    attempt.expect_close(attempt(-up), {1.0: "Where everything is negative it is 1."})


@exercise("filters, channels, rows, columns", seed=5)
def filter_scaled(attempt: Attempt, normal: Draw) -> None:
    """direction, weight, of one shape -> the same shape."""
    d, weight = normal(4, 3, 2, 5), 2 * normal(4, 3, 2, 5)

    def lengths(t: Tensor) -> Tensor:
        return t.flatten(1).norm(dim=1).view(-1, 1, 1, 1)

    outcomes = {
        d * lengths(weight) / lengths(d): "Of a convolution's four filters the direction is wrong.",
        d * weight.norm() / d.norm(): "The direction is scaled as a whole. Each filter weight[i] "
        "has its own length.",
        d / lengths(d): "The filters have length 1. Give each that of the model's own.",
        d * lengths(weight): "Multiply by the model's length, and divide by the direction's: the "
        "division is missing.",
        d * (weight.flatten(2).norm(dim=2) / d.flatten(2).norm(dim=2)).view(4, 3, 1, 1): "Each "
        "channel of a filter is scaled by itself. A filter is all of weight[i].",
        weight: "This is the model's own filter: the direction is not used.",
    }
    attempt.expect_close(attempt(d, weight), outcomes)
    matrix, own = normal(3, 6), normal(3, 6)
    outcomes = {
        matrix * (own.norm(dim=1) / matrix.norm(dim=1))[:, None]: "For a linear map the direction "
        "is wrong.",
        matrix * own.norm(dim=0) / matrix.norm(dim=0): "The columns have the model's lengths. A "
        "filter is a row, weight[i].",
    }
    attempt.expect_close(attempt(matrix, own, shape={"out": 3, "in": 6}), outcomes)
    message = "Parameters with one axis are no filters: there the direction is 0."
    attempt.expect_close(attempt(normal(7), normal(7), shape={"features": 7}), {0.0: message})
