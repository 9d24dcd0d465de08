import torch


def main_effects(results):
    """Signs times results: each part's contrast."""
    k = results.ndim
    states = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * k).view(-1, k)
    return states.T @ results.flatten() / 2 ** (k - 1)


def by_weights(behind, patches):
    """One Kronecker product for each patch."""
    return sum(torch.kron(behind[:, t].contiguous(), patches[t][None]) for t in range(len(patches)))


def partial_correlation(x, y, z):
    """From the three plain correlations."""
    r = torch.corrcoef(torch.stack([x, y, z]))
    return (r[0, 1] - r[0, 2] * r[1, 2]) / ((1 - r[0, 2] ** 2) * (1 - r[1, 2] ** 2)).sqrt()


def stitched(source, target, new, ridge):
    """A column of ones carries the shift."""
    x = source.reshape(-1, source.shape[-1])
    table = torch.cat([x, torch.ones_like(x[:, :1])], 1)
    penalty = ridge * torch.eye(table.shape[1])
    penalty[-1] = 0
    y = target.reshape(-1, target.shape[-1])
    found = torch.linalg.solve(table.T @ table + penalty, table.T @ y)
    return new @ found[:-1] + found[-1]


EQUIVALENT = [
    ("partial_correlation", "a dot product has no order", "x @ z -> z @ x", "y @ z -> z @ y", "x @ y -> y @ x"),
    ("partial_correlation", "with all three signs changed the result is the same", "values - values.mean() -> values.mean() - values"),
    ("stitched", "a constant in y is orthogonal to every x of mean 0", "y - -> y +"),
]  # fmt: skip
