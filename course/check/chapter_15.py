"""Chapter 15: steps towards an input, what they leave, Gauss-Newton, L-BFGS, and integers."""

import torch
from torch import Tensor

from course.check.attempt import Attempt, Draw
from course.check.exercise import exercise


@exercise("batch, n", seed=0)
def distance_step(attempt: Attempt, normal: Draw) -> None:
    """x [batch, n], target [batch, m], function [batch, n] -> [batch, m], eps -> as x."""
    x = normal(2, 4)
    target = normal(2, 5)
    matrix = normal(5, 4)
    eps = 0.5

    def linear(x: Tensor) -> Tensor:
        return x @ matrix.T

    left = linear(x) - target  # [batch, m]
    length = left.norm(dim=1, keepdim=True)
    g = left @ matrix / length  # the gradient of the distance
    outcomes = {
        x - eps * g: "For a linear function the step is wrong.",
        x: "x comes back unchanged.",
        x + eps * g: "The step leads uphill: the gradient is added.",
        x - eps * g * length: "This is the gradient's step for half the squared distance. Divide "
        "by the distance.",
        x - 2 * eps * g * length: "This is the gradient's step for the squared distance. Take its "
        "root.",
        x - eps * left @ matrix / left.norm(): "The distance is taken over the whole batch. Each "
        "entry has its own.",
        x - eps * g / 2: "You step by the mean over the batch. Take the sum: each entry steps by "
        "itself.",
        x - eps * linear(x) @ matrix / linear(x).norm(dim=1, keepdim=True): "The target is not "
        "used.",
        x - eps * g / g.norm(dim=1, keepdim=True): "The gradient is scaled to length 1.",
        x - eps * left.sign() @ matrix: "These are absolute differences, not the distance.",
        x - g: "eps is not used.",
        g: "The gradient itself is returned.",
    }
    attempt.expect_close(attempt(x, target, linear, eps), outcomes)
    reached = linear(x).tanh()
    away = reached - target
    slope = (away / away.norm(dim=1, keepdim=True) * (1 - reached.square())) @ matrix
    message = (
        "For a function that is not linear the step is wrong, though for a linear one it is right."
    )
    found = attempt(x, target, lambda x: linear(x).tanh(), eps)
    attempt.expect_close(found, {x - eps * slope: message})


@exercise("batch", seed=1)
def allowed_error(attempt: Attempt, normal: Draw) -> None:
    """jacobians [batch, m, n], distances [batch] -> [batch]."""
    values = torch.tensor([[4.0, 2.0, 0.5, 0.2], [3.0, 1.5, 1.0, 0.25], [8.0, 5.0, 2.0, 1.25]])
    left = torch.linalg.qr(normal(3, 6, 4)).Q
    jacobians = left * values[:, None] @ torch.linalg.qr(normal(3, 4, 4)).Q.mT  # [3, 6, 4]
    ones, distances = torch.ones(3), torch.tensor([0.5, 2.0, 3.0])
    least = values[:, -1]
    outcomes = {
        1 / least: "At distances of 1 the result is wrong.",
        1 / values[:, 0]: "You divide by the largest singular value: that is the shortest error, "
        "not the longest.",
        least: "This is the smallest singular value itself. Divide by it.",
        values[:, 0] / least: "This is the condition number.",
        1 / least**2: "You divide by an eigenvalue of the Jacobian's square. Take its root.",
        1 / values.square().sum(1).sqrt(): "You divide by the Frobenius norm, which is for errors "
        "in random directions.",
        ones / least.min(): "One singular value serves the whole batch. Each Jacobian has its own.",
    }
    attempt.expect_close(attempt(jacobians, ones), outcomes)
    outcomes = {
        distances / least: "At other distances than 1 the result is wrong.",
        1 / least: "distances is not used.",
        distances**2 / least: "distances is squared.",
        1 / least / distances: "You divide by distances.",
    }
    attempt.expect_close(attempt(jacobians, distances), outcomes)


@exercise("n", seed=2)
def left_after(attempt: Attempt, normal: Draw) -> None:
    """error [n], jacobian [m, n], steps -> [n]."""
    n = 3
    error = normal(n)
    values = torch.tensor([2.0, 1.0, 0.01])
    left = torch.linalg.qr(normal(5, n)).Q
    jacobian = left * values @ torch.linalg.qr(normal(n, n)).Q  # [5, 3]
    right = torch.linalg.svd(jacobian).Vh  # rows are singular vectors, with svd's signs
    shares = (values / values[0]).square()

    def after(factors: Tensor) -> Tensor:
        return factors * (right @ error) @ right

    outcomes = {
        error: "With no steps all of the error is left.",
        right @ error: "These are the coordinates along the singular vectors. Turn back.",
        after(1 - shares): "One step too many is taken.",
    }
    attempt.expect_close(attempt(error, jacobian, 0), outcomes)
    outcomes = {
        after(1 - shares): "After one step the error is wrong.",
        error: "The error is unchanged.",
        after(1 - shares.sqrt()): "The ratio of the singular values has to be squared.",
        after(1 + shares): "The step leads uphill: the gradient is added.",
        after(shares): "This is the part that is gone, not the part left.",
        after(1 - (values / values[-1]).square()): "The rate is one over the square of the "
        "*largest* singular value.",
        after(1 - values.square()): "The rate is 1. It should be one over the square of the "
        "largest singular value.",
        (1 - shares) * (right.mT @ error) @ right.mT: "The singular vectors are taken by columns. "
        "svd returns them as rows.",
    }
    attempt.expect_close(attempt(error, jacobian, 1), outcomes)
    many = 20_000
    outcomes = {
        after((1 - shares) ** many): f"After {many} steps the error is wrong, though after one it "
        "is right.",
        after(1 - many * shares): "Each step multiplies. You multiplied the decrease of one by "
        "their number.",
        after(1 - shares): "One step is taken, whatever steps is.",
        torch.zeros_like(error): "After so many steps only the weakest direction is left, and it "
        "is left: do not end early.",
    }
    attempt.expect_close(attempt(error, jacobian, many), outcomes)


@exercise("n", seed=0)
def gauss_newton_step(attempt: Attempt, normal: Draw) -> None:
    """x [n], target [m], function [n] -> [m] -> [n]."""
    x, a, matrix, offset = normal(3), normal(3), normal(5, 3), normal(5)

    def linear(x: Tensor) -> Tensor:
        return matrix @ x + offset

    left = linear(a) - linear(x)  # [m]
    outcomes = {
        a: "For a linear function and a target that it can give, one step must arrive.",
        x: "x comes back unchanged.",
        x + matrix.T @ left: "This is a step of gradient descent, along the transposed Jacobian. "
        "Solve for the step.",
        2 * x - a: "The step leads away from the target: its sign is wrong.",
        a - x: "The step itself is returned. Add it to x.",
        x + torch.linalg.pinv(matrix) @ linear(a): "You solve for the target, not the residual.",
    }
    attempt.expect_close(attempt(x, linear(a), linear), outcomes)

    def curved(x: Tensor) -> Tensor:
        return linear(x).tanh()

    target = 0.5 * normal(5)
    slope = (1 - curved(x).square())[:, None] * matrix
    step = torch.linalg.solve(slope.T @ slope, slope.T @ (target - curved(x)))
    elsewhere = torch.linalg.pinv((1 - offset.tanh().square())[:, None] * matrix)
    outcomes = {
        x + step: "For a nonlinear function and a target that it cannot give the step is wrong.",
        x + elsewhere @ (target - curved(x)): "The Jacobian is not that at x.",
    }
    attempt.expect_close(attempt(x, target, curved), outcomes)


def by_matrices(gradient: Tensor, steps: Tensor, changes: Tensor, scale: Tensor) -> Tensor:
    """The direction from the BFGS formula itself, with a matrix for the inverse Hessian."""
    eye = torch.eye(len(gradient))
    inverse = scale * eye
    for s, y in zip(steps, changes, strict=True):
        v = eye - torch.outer(y, s) / (s @ y)
        inverse = v.T @ inverse @ v + torch.outer(s, s) / (s @ y)
    return -inverse @ gradient


@exercise("n", seed=1)
def lbfgs_direction(attempt: Attempt, normal: Draw) -> None:
    """gradient [n], steps [k, n], changes [k, n] -> [n]."""
    n = 4
    root = normal(n, n)
    hessian = root @ root.T + torch.eye(n)
    gradient, steps = normal(n), normal(3, n)
    changes = steps @ hessian
    s, y = steps[-1:], changes[-1:]
    scale = (s[0] @ y[0]) / (y[0] @ y[0])
    expected = by_matrices(gradient, s, y, scale)
    outcomes = {
        expected: "With one pair the direction is wrong.",
        -expected: "The sign is wrong: the direction leads downhill, -q.",
        -gradient: "This is the direction of gradient descent.",
        by_matrices(gradient, s, y, torch.tensor(1.0)): "gamma is missing between the loops.",
        by_matrices(gradient, s, y, 1 / scale): "gamma is upside down.",
        by_matrices(gradient, s, y, (s[0] @ s[0]) / (s[0] @ y[0])): "gamma is (s . s) / (s . y). "
        "Here it is (s . y) / (y . y).",
        by_matrices(gradient, y, s, scale): "steps and changes are exchanged.",
    }
    attempt.expect_close(attempt(gradient, s, y), outcomes)
    expected = by_matrices(gradient, steps, changes, scale)
    oldest = (steps[0] @ changes[0]) / (changes[0] @ changes[0])
    outcomes = {
        expected: "With three pairs the direction is wrong, though with one it is right. The first "
        "loop goes from the newest pair to the oldest, the second back, with the alpha of each "
        "pair.",
        by_matrices(gradient, s, y, scale): "Only the newest pair is used.",
        by_matrices(gradient, steps.flip(0), changes.flip(0), scale): "The pairs are taken in the "
        "opposite order: the newest is the last.",
        by_matrices(gradient, steps.flip(0), changes.flip(0), oldest): "The order is opposite, and "
        "gamma is that of the oldest pair.",
        by_matrices(gradient, steps, changes, oldest): "gamma is that of the oldest pair. Take the "
        "newest, the last.",
    }
    attempt.expect_close(attempt(gradient, steps, changes), outcomes)


@exercise("batch, channels, height, width", seed=0)
def nearest_photograph(attempt: Attempt, normal: Draw) -> None:
    """image [batch, channels, height, width], mean [channels], std [channels] -> as image."""
    mean, std = torch.tensor([0.5, 0.3, 0.4]), torch.tensor([0.25, 0.2, 0.3])
    shift, scale = mean[:, None, None], std[:, None, None]
    levels = 255 * (0.5 + 0.1 * normal(2, 3, 4, 5)).clamp(0, 1)
    grey = levels.round()

    def read(pixels: Tensor) -> Tensor:
        return (pixels / 255 - shift) / scale

    x = read(levels)
    outcomes = {
        read(grey): "Undo the mean and std, round 255 times the image to integers, and apply the "
        "mean and std again.",
        x: "x comes back unchanged.",
        x.round(): "You round what the model reads. Its pixels are the integers.",
        (255 * x).round() / 255: "You round 255 times what the model reads, without undoing mean "
        "and std.",
        read(levels.floor()): "The pixels are cut off, not rounded: .byte() and .int() do that.",
        read(255 / 256 * (256 / 255 * levels).round()): "255 is white, not 256.",
        grey: "These are the integers. Give what the model reads: divide by 255, and apply mean "
        "and std again.",
        grey / 255: "The mean and std are not applied again.",
    }
    attempt.expect_close(attempt(x, mean, std), outcomes)
    beyond = 1.2 * levels.sub(127).sign() * 127.5 + 127.5
    outcomes = {
        read(beyond.clamp(0, 255)): "An image that is darker than black or brighter than white is "
        "nearest to a photograph of black and white: clamp to 0 and 255.",
        read(beyond.round() % 256): "uint8 has no room below 0 and above 255: the pixels wrap "
        "around. Clamp before you convert.",
    }
    attempt.expect_close(attempt(read(beyond), mean, std), outcomes)
