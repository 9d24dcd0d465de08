import torch


def distance_step(x, target, function, eps):
    moved = x.clone().requires_grad_()
    distances = (function(moved) - target).square().sum(1).sqrt()
    distances.backward(torch.ones_like(distances))
    return x - eps * moved.grad


def allowed_error(jacobians, distances):
    smallest = torch.linalg.eigvalsh(jacobians.mT @ jacobians)[:, 0]
    return distances * smallest.rsqrt()


def left_after(error, jacobian, steps):
    """One step as a matrix, and its power."""
    rate = 1 / torch.linalg.matrix_norm(jacobian, 2) ** 2
    step = torch.eye(len(error)).to(error) - rate * jacobian.T @ jacobian
    return torch.linalg.matrix_power(step, steps) @ error


def gauss_newton_step(x, target, function):
    jacobian = torch.func.jacfwd(function)(x)
    return x - torch.linalg.pinv(jacobian) @ (function(x) - target)


def lbfgs_direction(gradient, steps, changes):
    """The BFGS formula with its matrix, from the identity scaled by the newest pair."""
    s, y = steps[-1], changes[-1]
    inverse = torch.eye(len(gradient)) * ((s @ y) / (y @ y))
    for s, y in zip(steps, changes, strict=True):
        rho = 1 / (s @ y)
        left = torch.eye(len(s)) - rho * s[:, None] * y
        inverse = left @ inverse @ left.T + rho * s[:, None] * s
    return -(inverse @ gradient)


def nearest_photograph(image, mean, std):
    """The nearest of all 256 levels."""
    levels = (torch.linspace(0, 1, 256).to(image)[:, None] - mean) / std  # [256, channels]
    nearest = (image[..., None] - levels.T[:, None, None]).abs().argmin(-1)
    return levels.T[torch.arange(len(mean))[:, None, None], nearest]


EQUIVALENT = [
    ("distance_step", "a distance has no direction", "function(x) - target -> target - function(x)"),
    ("left_after", "there are n right singular vectors either way", ", full_matrices=False) -> )", "full_matrices=False -> full_matrices=True"),
    ("gauss_newton_step", "there is one right side", "[:, 0] -> [:, -1]"),
    ("lbfgs_direction", "a dot product is symmetric", "s @ q / (s @ y -> s @ q / (y @ s", "s @ q -> q @ s", "y @ q -> q @ y",
     "(s @ y) / -> (y @ s) /", "(s @ y)) * s -> (y @ s)) * s"),
]  # fmt: skip
