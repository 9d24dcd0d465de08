"""Chapter 15: answers that learners might give."""

from functools import partial

import torch


def by_backward(x, target, function, eps):
    moved = x.clone().requires_grad_()
    distances = (function(moved) - target).square().sum(1).sqrt()
    distances.backward(torch.ones_like(distances))
    return x - eps * moved.grad


def faulty_step(
    x, target, function, eps, sign=-1, of=lambda left: left.norm(dim=1).sum(), use=1, end=None
):
    g = torch.func.grad(lambda x: of(function(x) - use * target))(x)
    return (x if end is None else 0) + sign * eps * g


def by_curvature(jacobians, distances):
    smallest = torch.linalg.eigvalsh(jacobians.mT @ jacobians)[:, 0]
    return distances * smallest.rsqrt()


def faulty_error(jacobians, distances, by=lambda v: v[:, -1], of=lambda d, s: d / s):
    return of(distances, by(torch.linalg.svdvals(jacobians)))


def by_powers(error, jacobian, steps):
    """One step as a matrix, and its power."""
    rate = 1 / torch.linalg.matrix_norm(jacobian, 2) ** 2
    step = torch.eye(len(error)).to(error) - rate * jacobian.T @ jacobian
    return torch.linalg.matrix_power(step, steps) @ error


def faulty_left(
    error,
    jacobian,
    steps,
    factor=lambda v: 1 - (v / v[0]) ** 2,
    power=lambda f, k: f**k,
    into=lambda rows, e: rows @ e,
    back=lambda rows, e: e @ rows,
):
    _, values, rows = torch.linalg.svd(jacobian, full_matrices=False)
    if not steps:
        return error.clone()
    return back(rows, power(factor(values), steps) * into(rows, error))


def by_pseudo_inverse(x, target, function):
    jacobian = torch.func.jacfwd(function)(x)
    return x - torch.linalg.pinv(jacobian) @ (function(x) - target)


def faulty_newton(x, target, function, solve=torch.linalg.pinv, sign=1, left=None, at=None, to=1):
    jacobian = torch.func.jacfwd(function)(x if at is None else at(x))
    difference = target - function(x) if left is None else left(target)
    return to * x + sign * solve(jacobian) @ difference


def by_matrix(gradient, steps, changes, scale=None, sign=-1, newest=-1, pairs=slice(None)):
    """The BFGS formula with its matrix, from the identity scaled by the newest pair."""
    s, y = steps[newest], changes[newest]
    inverse = torch.eye(len(gradient)) * ((s @ y) / (y @ y) if scale is None else scale(s, y))
    for s, y in zip(steps[pairs], changes[pairs], strict=True):
        rho = 1 / (s @ y)
        left = torch.eye(len(s)) - rho * s[:, None] * y
        inverse = left @ inverse @ left.T + rho * s[:, None] * s
    return sign * (inverse @ gradient)


def upside_down(gradient, steps, changes):
    return by_matrix(gradient, steps.flip(0), changes.flip(0), newest=-1)


CORRECT = {
    "distance_step": by_backward,
    "allowed_error": by_curvature,
    "left_after": by_powers,
    "gauss_newton_step": by_pseudo_inverse,
    "lbfgs_direction": by_matrix,
}

WRONG = {
    "distance_step": [
        ("comes back unchanged", lambda x, target, function, eps: x.clone()),
        ("leads uphill", partial(faulty_step, sign=1)),
        ("half the squared distance", partial(faulty_step, of=lambda d: d.square().sum() / 2)),
        ("for the squared distance", partial(faulty_step, of=lambda d: d.square().sum())),
        ("over the whole batch", partial(faulty_step, of=torch.linalg.norm)),
        ("by the mean over the batch", partial(faulty_step, of=lambda d: d.norm(dim=1).mean())),
        ("The target is not used", partial(faulty_step, use=0)),
        ("eps is not used", lambda x, target, function, eps: by_backward(x, target, function, 1)),
        ("The gradient itself", lambda x, t, f, eps: faulty_step(x, t, f, 1, sign=1, end=0)),
        (
            "though for a linear one",
            lambda x, t, f, eps: by_backward(
                x,
                t,
                lambda x: f(x) if (f(2 * x) - 2 * f(x)).abs().max() < 1e-4 else x.sum() + 0 * t,
                eps,
            ),
        ),
    ],
    "allowed_error": [
        ("the shortest error", partial(faulty_error, by=lambda v: v[:, 0])),
        ("singular value itself", partial(faulty_error, of=lambda d, s: d * s)),
        ("the condition number", partial(faulty_error, by=lambda v: v[:, -1] / v[:, 0])),
        ("an eigenvalue", partial(faulty_error, of=lambda d, s: d / s.square())),
        ("Frobenius", partial(faulty_error, by=lambda v: v.norm(dim=1))),
        ("serves the whole batch", partial(faulty_error, by=lambda v: v.min())),
        ("distances is not used", partial(faulty_error, of=lambda d, s: 1 / s)),
        ("distances is squared", partial(faulty_error, of=lambda d, s: d**2 / s)),
        ("You divide by distances", partial(faulty_error, of=lambda d, s: 1 / s / d)),
    ],
    "left_after": [
        ("too many", lambda e, j, steps: by_powers(e, j, steps + 1)),
        ("unchanged", lambda e, j, steps: e.clone()),
        ("has to be squared", partial(faulty_left, factor=lambda v: 1 - v / v[0])),
        ("leads uphill", partial(faulty_left, factor=lambda v: 1 + (v / v[0]) ** 2)),
        ("the part that is gone", partial(faulty_left, factor=lambda v: (v / v[0]) ** 2)),
        ("the *largest*", partial(faulty_left, factor=lambda v: 1 - (v / v[-1]) ** 2)),
        ("The rate is 1.", partial(faulty_left, factor=lambda v: 1 - v**2)),
        ("Turn back", partial(faulty_left, back=lambda rows, e: e)),
        (
            "by columns",
            partial(faulty_left, into=lambda rows, e: rows.T @ e, back=lambda rows, e: e @ rows.T),
        ),
        ("Each step multiplies", partial(faulty_left, power=lambda f, k: 1 - k * (1 - f))),
        ("One step is taken", partial(faulty_left, power=lambda f, k: f)),
        ("do not end early", partial(faulty_left, power=lambda f, k: f if k == 1 else 0 * f)),
    ],
    "gauss_newton_step": [
        ("comes back unchanged", lambda x, target, function: x.clone()),
        ("a step of gradient descent", partial(faulty_newton, solve=lambda j: j.T)),
        ("leads away", partial(faulty_newton, sign=-1)),
        ("The step itself", partial(faulty_newton, to=0)),
        ("not for the residual", partial(faulty_newton, left=lambda target: target)),
        ("not that at x", partial(faulty_newton, at=torch.zeros_like)),
    ],
    "lbfgs_direction": [
        ("The sign is wrong", partial(by_matrix, sign=1)),
        ("of gradient descent", lambda gradient, steps, changes: -gradient),
        ("gamma is missing", partial(by_matrix, scale=lambda s, y: 1)),
        ("upside down", partial(by_matrix, scale=lambda s, y: (y @ y) / (s @ y))),
        ("gamma is (s . s)", partial(by_matrix, scale=lambda s, y: (s @ s) / (s @ y))),
        (
            "are exchanged",
            lambda g, s, y: by_matrix(g, y, s, scale=lambda *_: (s[-1] @ y[-1]) / (y[-1] @ y[-1])),
        ),
        ("Only the newest pair", partial(by_matrix, pairs=slice(-1, None))),
        (
            "in the opposite order: the",
            lambda g, s, y: by_matrix(g, s.flip(0), y.flip(0), newest=0),
        ),
        ("The order is opposite, and", upside_down),
        ("gamma is that of the oldest pair. Take", partial(by_matrix, newest=0)),
    ],
}

DISTANCE = "return ({}).norm(dim=1).sum()"
ALPHA = "alphas.append({})"
BETA = "q = q + (alphas.pop() - {}) * s"
VALUES = "_, values, rows = torch.linalg.svd({})"
SYMMETRIC = "a dot product is symmetric"

EQUIVALENT = {
    "distance_step": {
        f"{DISTANCE.format('function(x) - target')} -> {DISTANCE.format('target - function(x)')}": (
            "a distance has no direction"
        ),
    },
    "allowed_error": {},
    "left_after": {
        f"{VALUES.format('jacobian, full_matrices=False')} -> {VALUES.format(other)}": (
            "with m >= n there are n right singular vectors either way"
        )
        for other in ("jacobian", "jacobian, full_matrices=True")
    },
    "gauss_newton_step": {
        "return x + torch.linalg.lstsq(jacobian, left).solution[:, 0] -> "
        "return x + torch.linalg.lstsq(jacobian, left).solution[:, -1]": "there is one right side",
    },
    "lbfgs_direction": {
        f"{ALPHA.format('s @ q / (s @ y)')} -> {ALPHA.format('s @ q / (y @ s)')}": SYMMETRIC,
        f"{ALPHA.format('s @ q / (s @ y)')} -> {ALPHA.format('q @ s / (s @ y)')}": SYMMETRIC,
        "q = q * (s @ y) / (y @ y) -> q = q * (y @ s) / (y @ y)": SYMMETRIC,
        f"{BETA.format('y @ q / (s @ y)')} -> {BETA.format('q @ y / (s @ y)')}": SYMMETRIC,
        f"{BETA.format('y @ q / (s @ y)')} -> {BETA.format('y @ q / (y @ s)')}": SYMMETRIC,
    },
}
