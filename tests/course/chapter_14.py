import torch


def queries_from_scores(scores, keys):
    d = keys.shape[-1]
    return torch.linalg.solve(keys.T @ keys, keys.T @ scores.T).T * d**0.5


def undo_residual(y, branch, steps):
    return y if steps == 0 else y - branch(undo_residual(y, branch, steps - 1))


def asymptotic_rate(x, branch):
    """Gelfand's formula, in float64, by squaring."""
    power, logarithm = torch.func.jacfwd(branch)(x).double(), 0.0
    for k in range(40):
        size = power.norm()
        logarithm = logarithm + size.log() / 2**k
        power = (power / size) @ (power / size)
    return logarithm.exp().float()


def held_attention(weights, w_v, w_out):
    """Sends the unit vectors through the layer, one after the other."""
    heads, n, _ = weights.shape
    basis = torch.eye(n * len(w_v)).view(-1, n, len(w_v))  # [tokens * dim, tokens, dim]
    values = (basis @ w_v).unflatten(-1, (heads, -1)).transpose(1, 2)
    return ((weights @ values).transpose(1, 2).flatten(2) @ w_out).flatten(1).T


def build_collision(positive, negative, function):
    """Goes along the line in small steps, then slides back from points ever farther off."""
    jacobian = torch.func.jacrev(function)
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        inside = torch.linalg.det(jacobian(torch.lerp(positive, negative, middle))) > 0
        low, high = (middle, high) if inside else (low, middle)
    fold = torch.lerp(positive, negative, low)
    lost = torch.linalg.eigh(jacobian(fold).T @ jacobian(fold)).eigenvectors[:, 0]
    for length in (0.002, 0.005, 0.02, 0.05):
        first, second = fold - length * lost, fold + length * lost
        for _ in range(30):
            residual = function(second) - function(first)
            second = second - torch.linalg.inv(jacobian(second)) @ residual
        if (first - second).norm() > 2e-3 and (function(first) - function(second)).norm() < 1e-11:
            return torch.stack([second, first])
    raise ArithmeticError("no collision")


WRONG = [
    ("build_collision", "are the same", lambda positive, negative, f: torch.stack([positive, positive])),
    ("build_collision", "that were given", lambda positive, negative, f: torch.stack([positive, negative])),
    ("build_collision", "expected 1e-3 at least", lambda p, n, f: torch.stack([p, p + 1e-5])),
    ("build_collision", "expected 1e-9 at most", lambda p, n, f: torch.stack([p, p + 0.05])),
]  # fmt: skip

EQUIVALENT = [
    ("build_collision", "Newton's method crosses the fold from here too", "positive - 0.05 -> negative - 0.05 | positive / 0.05 | positive // 0.05",
     "- 0.05 * -> - 0.05 % | - 0.05 ** | - 0.05 - | - 0.05 / | - 0.05 //", "- 0.05 -> - 1.05", "Vh[-1] -> Vh[1]"),
    ("build_collision", "another first input does as well", "positive + 0.05 -> negative + 0.05", "* lost, -> % lost, | + lost,", "+ 0.05 -> + 1.05"),
    ("build_collision", "one step more or less of what has converged", "range(20) -> range(19) | range(21)", "range(40) -> range(39) | range(41)"),
    ("build_collision", "it is never exactly zero", "> 0 -> >= 0"),
    ("build_collision", "the two ends have met", "jacobian(positive) -> jacobian(negative)"),
    ("build_collision", "the fold is also met on the way to zero", "/ 2 -> / 3"),
]  # fmt: skip
