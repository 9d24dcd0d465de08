"""Chapter 14: layers inverted: scores, residual branches, heads, folds."""

import torch
from torch import Tensor

from course.check.attempt import Attempt, Draw
from course.check.exercise import exercise


@exercise("queries, d", seed=0)
def queries_from_scores(attempt: Attempt, normal: Draw) -> None:
    """scores [queries, keys], keys [keys, d] -> [queries, d]."""
    q, k = normal(3, 4), normal(7, 4)
    outcomes = {
        q: "These are not the queries whose scaled products with the keys are the scores.",
        q / 2: "The scale is not undone: the scores were divided by the root of d.",
        q / 4: "You divide by the root of d. The scores have been divided already.",
        2 * q: "You multiply by d. The scores were divided by its root.",
        **dict.fromkeys((q @ k.T @ k / 2, q @ k.T @ k), "A product does not undo one: solve."),
        q * 7**0.5 / 2: "The root is that of d, not of the number of keys.",
    }
    attempt.expect_close(attempt(q @ k.T / 2, k), outcomes)
    wide, keys = normal(3, 9), normal(11, 9)
    outcomes = {
        wide: "With d = 9 the queries are wrong, though with d = 4 they were right.",
        wide * 2 / 3: "The scale is 2 whatever d is.",
    }
    attempt.expect_close(attempt(wide @ keys.T / 3, keys), outcomes)


@exercise("batch, tokens, dim", seed=1)
def undo_residual(attempt: Attempt, normal: Draw) -> None:
    """y [batch, tokens, dim], branch: y's shape -> the same, steps -> as y."""
    y = normal(2, 3, 5)
    w = 0.2 * normal(5, 5)

    def branch(x: Tensor) -> Tensor:
        return (x @ w).tanh() + 0.1

    def iterated(steps: int) -> Tensor:
        x = y
        for _ in range(steps):
            x = y - branch(x)
        return x

    outcomes = {
        y: "With steps = 0 the result should be y.",
        iterated(1): "You take one step too many.",
    }
    attempt.expect_close(attempt(y, branch, 0), outcomes)
    outcomes = {
        iterated(1): "After one step from y the result should be y - branch(y).",
        y + branch(y): "You add the branch. It was added; take it away.",
        iterated(2): "You take one step too many.",
        y: "Nothing has moved after one step.",
        y - branch(torch.zeros_like(y)): "You begin at zero. Begin at y.",
    }
    attempt.expect_close(attempt(y, branch, 1), outcomes)
    x = y
    for _ in range(3):
        x = x - branch(x)
    outcomes = {
        iterated(3): "After three steps the result is wrong, though after one it was right.",
        iterated(1): "Every step applies the branch to y. Apply it to the newest guess.",
        x: "You subtract the branch from the guess. Subtract it from y.",
        iterated(2): "You take one step too few.",
    }
    attempt.expect_close(attempt(y, branch, 3), outcomes)


@exercise(seed=2)
def asymptotic_rate(attempt: Attempt, normal: Draw) -> None:
    """x [n], branch [n] -> [n] -> one number."""
    x = normal(5)
    turn, stretch = torch.tensor([[0.0, -0.25], [1.0, 0.0]]), torch.tensor([[0.1, 9.0], [0.0, 0.2]])
    matrix = torch.block_diag(turn, stretch, torch.tensor([[-0.3]]))
    outcomes = {
        0.5: "For a linear branch whose eigenvalues have the sizes 0.5, 0.5, 0.3, 0.2 and 0.1 the "
        "rate should be 0.5.",
        torch.linalg.svdvals(matrix)[0]: "This is the largest singular value, the stretch of one "
        "step. Over many steps eigenvalues decide.",
        **dict.fromkeys((0.2, 0.3), "This is a real part. 0.5i and -0.5i have the size 0.5."),
        0.1: "This is the smallest. In the long run the slowest direction is left.",
        1.2: "Take the Jacobian of the branch alone, without the identity.",
        matrix.norm(): "This is the Frobenius norm.",
        torch.linalg.eigvalsh(matrix).abs().max(): "You took eigenvalues of a symmetric matrix.",
    }
    attempt.expect_close(attempt(x, lambda x: matrix @ x), outcomes)
    slope = 1 - x.tanh().square()
    outcomes = {
        0.9 * slope.max(): "For a nonlinear branch the rate is wrong. Take the Jacobian at x.",
        0.9: "You took the Jacobian at zero. It belongs to x.",
        -0.9 * slope.min(): "The size of a negative eigenvalue counts.",
    }
    attempt.expect_close(attempt(x, lambda x: -0.9 * x.tanh()), outcomes)


@exercise("tokens * dim, tokens * dim again", seed=3)
def held_attention(attempt: Attempt, normal: Draw) -> None:
    """weights [heads, tokens, tokens], w_v [dim, dim], w_out [dim, dim] -> a square matrix."""
    heads, n, dim = 2, 3, 4
    w_v, w_out, x = normal(dim, dim), normal(dim, dim), normal(n, dim)

    def expected(*maps: Tensor) -> Tensor:
        return torch.func.jacrev(mixed)(x, *maps).flatten(2).flatten(0, 1)

    one = normal(1, n, n).softmax(-1)
    product, turned = w_v @ w_out, w_out.T @ w_v.T  # kron wants contiguous matrices
    right = expected(one, w_v, w_out)
    outcomes = {
        right: "With one head the matrix is wrong.",
        torch.kron(one[0], product): "Within each block the matrix is not transposed. Tokens are "
        "rows, and multiplied from the right.",
        torch.kron(one[0].T.contiguous(), turned): "The attention weights are transposed. Row i "
        "holds what token i takes.",
        right.T: "This is the transposed matrix.",
        torch.kron(turned, one[0]): "Tokens and entries are swapped: read one token after another, "
        "row by row.",
        expected(one, w_v, torch.eye(dim)): "w_out is not used.",
        expected(one, torch.eye(dim), w_out): "w_v is not used.",
        expected(one, w_out, w_v): "w_out comes before w_v.",
    }
    attempt.expect_close(attempt(one, w_v, w_out), outcomes)
    weights = normal(heads, n, n).softmax(-1)
    outcomes = {
        expected(weights, w_v, w_out): "With two heads the matrix is wrong. Each head has its own "
        "columns of w_v and its own rows of w_out.",
        torch.kron(weights.sum(0), turned): "Every head has all of w_v and w_out. Cut both into "
        "the heads' parts.",
        expected(torch.stack([weights[0], 0 * weights[0]]), w_v, w_out): "Only the first head is "
        "there. The heads' outputs add up.",
        torch.kron(weights.mean(0), turned): "The heads' weights are averaged. Each head has its "
        "own.",
    }
    attempt.expect_close(attempt(weights, w_v, w_out), outcomes)


def mixed(x: Tensor, weights: Tensor, values: Tensor, out: Tensor, interleaved=False) -> Tensor:
    """Attention with given weights [heads, tokens, tokens]; with the last a head has every n-th."""
    split = (-1, len(weights)) if interleaved else (len(weights), -1)
    v = torch.unflatten(x @ values, -1, split)
    axes = "hij,...jdh->...idh" if interleaved else "hij,...jhd->...ihd"
    return torch.einsum(axes, weights, v).flatten(-2) @ out


def cusp(x: Tensor) -> Tensor:
    """A map of three numbers that folds: x0³ - x0 x1, and the others bent a little."""
    return torch.stack([x[0] ** 3 - x[0] * x[1], x[1] + 0.1 * x[2].sin(), x[2] + 0.1 * x[0] * x[1]])


def square(x: Tensor) -> Tensor:
    """Folds along x0 = 0, where its rotation has put it."""
    z = x.new_tensor([[0.6, -0.8], [0.8, 0.6]]) @ x
    return torch.stack([z[0] ** 2 + 0.3 * z[0] ** 3, z[1] + z[0] ** 2])


@exercise()
def build_collision(attempt: Attempt) -> None:
    """positive [n], negative [n], function [n] -> [n] -> [2, n]."""
    starts = {square: [[0.5, 0.3], [-0.5, -0.1]], cusp: [[1.2, 0.4, 0.1], [0.1, 1.0, -0.3]]}
    for function, sides in starts.items():
        positive, negative = torch.tensor(sides)
        pair = attempt(positive, negative, function, shape={"inputs": 2, "n": len(positive)})
        first, second = pair
        apart, off = (first - second).norm(), (function(first) - function(second)).norm()
        message = (
            "The two inputs are the same. Newton's method must begin on the other side of the fold."
        )
        attempt.expect(apart > 0, message)
        message = "These are the inputs that were given. They have different outputs."
        attempt.expect(not torch.equal(pair, torch.stack([positive, negative])), message)
        attempt.expect(
            apart >= 1e-3,
            f"The two inputs are {apart:.1g} apart, expected 1e-3 at least. Next to a fold outputs "
            "agree nearly, whatever you do: step off farther, to both sides, along the last right "
            "singular vector.",
        )
        attempt.expect(
            off <= 1e-9,
            f"The outputs are {off:.1g} apart, expected 1e-9 at most. Stepping off to both sides "
            "makes them nearly equal; Newton's method does the rest.",
        )
