"""Chapter 14: layers inverted: scores, residual branches, heads, folds."""

import torch
from torch import Tensor

from course.check.attempt import Attempt, normal_draws
from course.check.exercise import exercise


@exercise
def queries_from_scores(attempt: Attempt) -> None:
    """scores [queries, keys], keys [keys, d] -> [queries, d]."""
    shape = {"queries": 3, "d": 4}
    normal = normal_draws(seed=0)
    q, k = normal(3, 4), normal(7, 4)
    outcomes = {
        "These are not the queries whose scaled products with the keys are the scores.": q,
        "The scale is not undone: the scores were divided by the root of d.": q / 2,
        "You divide by the root of d. The scores have been divided already.": q / 4,
        "You multiply by d. The scores were divided by its root.": 2 * q,
        "A product with the keys does not undo one: solve for the queries.": q @ k.T @ k / 2,
    }
    attempt.expect_close(attempt(q @ k.T / 2, k, shape=shape), outcomes)
    wide, keys = normal(3, 9), normal(11, 9)
    outcomes = {
        "With d = 9 the queries are wrong, though with d = 4 they were right.": wide,
        "The scale is 2 whatever d is.": wide * 2 / 3,
    }
    attempt.expect_close(attempt(wide @ keys.T / 3, keys, shape=shape | {"d": 9}), outcomes)


@exercise
def undo_residual(attempt: Attempt) -> None:
    """y [batch, tokens, dim], branch: y's shape -> the same, steps -> as y."""
    shape = dict(batch=2, tokens=3, dim=5)
    normal = normal_draws(seed=1)
    y = normal(*shape.values())
    w = 0.2 * normal(5, 5)

    def branch(x: Tensor) -> Tensor:
        return (x @ w).tanh() + 0.1

    def iterated(steps: int) -> Tensor:
        x = y
        for _ in range(steps):
            x = y - branch(x)
        return x

    def asked(steps: int) -> Tensor:
        return attempt(y, branch, steps, shape=shape)

    outcomes = {
        "With steps = 0 the result should be y.": y,
        "You take one step too many.": iterated(1),
    }
    attempt.expect_close(asked(0), outcomes)
    outcomes = {
        "After one step from y the result should be y - branch(y).": iterated(1),
        "You add the branch. It was added; take it away.": y + branch(y),
        "You take one step too many.": iterated(2),
        "Nothing has moved after one step.": y,
        "You begin at zero. Begin at y.": y - branch(torch.zeros_like(y)),
    }
    attempt.expect_close(asked(1), outcomes)
    x = y
    for _ in range(3):
        x = x - branch(x)
    outcomes = {
        "After three steps the result is wrong, though after one it was right.": iterated(3),
        "Every step applies the branch to y. Apply it to the newest guess.": iterated(1),
        "You subtract the branch from the guess. Subtract it from y.": x,
        "You take one step too few.": iterated(2),
    }
    attempt.expect_close(asked(3), outcomes)


@exercise
def asymptotic_rate(attempt: Attempt) -> None:
    """x [n], branch [n] -> [n] -> one number."""
    normal = normal_draws(seed=2)
    x = normal(5)
    turn, stretch = torch.tensor([[0.0, -0.25], [1.0, 0.0]]), torch.tensor([[0.1, 9.0], [0.0, 0.2]])
    matrix = torch.block_diag(turn, stretch, torch.tensor([[-0.3]]))
    values = torch.linalg.svdvals(matrix)
    outcomes = {
        "For a linear branch whose eigenvalues have the sizes 0.5, 0.5, 0.3, 0.2 and 0.1 the rate "
        "should be 0.5.": 0.5,
        "This is the largest singular value, the stretch of one step. Over many steps eigenvalues "
        "decide.": values[0],
        "This is the largest real part. The eigenvalues 0.5i and -0.5i turn an error and shrink it "
        "no faster.": 0.2,
        "This is the smallest. In the long run the slowest direction is left.": 0.1,
        "Take the Jacobian of the branch alone, without the identity.": 1.2,
        "This is the Frobenius norm.": matrix.norm(),
        "You took the eigenvalues of a symmetric matrix.": (
            torch.linalg.eigvalsh(matrix).abs().max()
        ),
    }
    attempt.expect_close(attempt(x, lambda x: matrix @ x), outcomes)
    slope = 1 - x.tanh().square()
    outcomes = {
        "For a branch that is not linear the rate is wrong. Take the Jacobian at x.": (
            0.9 * slope.max()
        ),
        "You took the Jacobian at zero. It belongs to x.": 0.9,
        "The size of a negative eigenvalue counts.": -0.9 * slope.min(),
    }
    attempt.expect_close(attempt(x, lambda x: -0.9 * x.tanh()), outcomes)


@exercise
def held_attention(attempt: Attempt) -> None:
    """weights [heads, tokens, tokens], w_v [dim, dim], w_out [dim, dim] -> a square matrix."""
    heads, n, dim = 2, 3, 4
    shape = {"tokens * dim": n * dim, "tokens * dim again": n * dim}
    normal = normal_draws(seed=3)
    w_v, w_out, x = normal(dim, dim), normal(dim, dim), normal(n, dim)

    def expected(weights: Tensor, w_v: Tensor, w_out: Tensor) -> Tensor:
        def layer(flat: Tensor) -> Tensor:
            values = (flat.view(n, dim) @ w_v).view(n, len(weights), -1)  # [tokens, heads, d]
            mixed = torch.einsum("hij,jhd->ihd", weights, values)
            return (mixed.flatten(1) @ w_out).flatten()

        return torch.func.jacrev(layer)(x.flatten())

    one = normal(1, n, n).softmax(-1)
    product, turned = w_v @ w_out, w_out.T @ w_v.T  # kron wants contiguous matrices
    right = expected(one, w_v, w_out)
    outcomes = {
        "With one head the matrix is wrong.": right,
        "Within each block the matrix is not transposed. Tokens are rows, and multiplied from the "
        "right.": torch.kron(one[0], product),
        "The attention weights are transposed. Row i holds what token i takes.": torch.kron(
            one[0].T.contiguous(), turned
        ),
        "This is the transposed matrix.": right.T,
        "Tokens and entries are swapped: read one token after another, row by row.": torch.kron(
            turned, one[0]
        ),
        "w_out is not used.": expected(one, w_v, torch.eye(dim)),
        "w_v is not used.": expected(one, torch.eye(dim), w_out),
        "w_out comes before w_v.": expected(one, w_out, w_v),
    }
    attempt.expect_close(attempt(one, w_v, w_out, shape=shape), outcomes)
    weights = normal(heads, n, n).softmax(-1)
    outcomes = {
        "With two heads the matrix is wrong. Each head has its own columns of w_v and its own rows "
        "of w_out.": expected(weights, w_v, w_out),
        "Every head has all of w_v and w_out. Cut both into the heads' parts.": torch.kron(
            weights.sum(0), turned
        ),
        "Only the first head is there. The heads' outputs add up.": expected(
            torch.stack([weights[0], 0 * weights[0]]), w_v, w_out
        ),
        "The heads' weights are averaged. Each head has its own.": torch.kron(
            weights.mean(0), turned
        ),
    }
    attempt.expect_close(attempt(weights, w_v, w_out, shape=shape), outcomes)


def cusp(x: Tensor) -> Tensor:
    """A map of three numbers that folds: x0³ - x0 x1, and the others bent a little."""
    return torch.stack([x[0] ** 3 - x[0] * x[1], x[1] + 0.1 * x[2].sin(), x[2] + 0.1 * x[0] * x[1]])


def square(x: Tensor) -> Tensor:
    """Folds along x0 = 0, where its rotation has put it."""
    turn = x.new_tensor([[0.6, -0.8], [0.8, 0.6]])
    z = turn @ x
    return torch.stack([z[0] ** 2 + 0.3 * z[0] ** 3, z[1] + z[0] ** 2])


@exercise
def build_collision(attempt: Attempt) -> None:
    """positive [n], negative [n], function [n] -> [n] -> [2, n]."""
    ends = torch.tensor([[0.5, 0.3], [-0.5, -0.1]])
    for function, (positive, negative) in (
        (square, ends),
        (cusp, torch.tensor([[1.2, 0.4, 0.1], [0.1, 1.0, -0.3]])),
    ):
        pair = attempt(positive, negative, function, shape={"inputs": 2, "n": len(positive)})
        first, second = pair
        apart, off = (first - second).norm(), (function(first) - function(second)).norm()
        attempt.expect(
            apart > 0,
            "The two inputs are the same. Newton's method must begin on the other side of the "
            "fold.",
        )
        attempt.expect(
            not torch.equal(pair, torch.stack([positive, negative])),
            "These are the inputs that were given. They have different outputs.",
        )
        attempt.expect(
            apart >= 1e-3,
            f"The two inputs are {apart:.1g} apart, expected 1e-3 at least. Next to a fold outputs "
            "agree nearly, whatever you do: step off farther.",
        )
        attempt.expect(
            off <= 1e-9,
            f"The outputs are {off:.1g} apart, expected 1e-9 at most. Stepping off to both sides "
            "makes them nearly equal; Newton's method does the rest.",
        )
