"""Chapter 17: answers that learners might give."""

import math
from functools import partial

import torch


def by_counting(values, share):
    """Takes steps until it is enough."""
    errors, steps = torch.ones(len(values), dtype=torch.float64), 0
    factors = 1 - (values.double() / values.max().double()) ** 2
    while errors.max() > share:
        errors, steps = errors * factors, steps + 1
    return steps


def faulty_steps(values, share, power=2, rounding=math.ceil, which=torch.min, half=1):
    factor = 1 - (which(values) / values.max()).item() ** power
    return rounding(math.log(share) / math.log(factor) / half)


def second_largest(values):
    return values.sort().values[-2]


def by_signs(results):
    """Signs times results: each part's contrast."""
    k = results.ndim
    states = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * k).view(-1, k)
    return states.T @ results.flatten() / 2 ** (k - 1)


def from_corner(results, corner):
    k = results.ndim
    at = [[corner] * k for _ in range(k)]
    pairs = [[(*a[:i], state, *a[i + 1 :]) for state in (0, 1)] for i, a in enumerate(at)]
    return torch.stack([results[high] - results[low] for low, high in pairs])


def by_products(behind, patches):
    """One Kronecker product for each patch."""
    return sum(torch.kron(behind[:, t].contiguous(), patches[t][None]) for t in range(len(patches)))


def by_matrix(behind, patches):
    return (behind.transpose(1, 2) @ patches).reshape(len(behind), -1)


def by_columns(behind, patches):
    return (patches.T @ behind).reshape(len(behind), -1)


def sums_first(behind, patches):
    return torch.einsum("oi,j->oij", behind.sum(1), patches.sum(0)).flatten(1)


def by_formula(x, y, z):
    """From the three plain correlations."""
    r = torch.corrcoef(torch.stack([x, y, z]))
    return (r[0, 1] - r[0, 2] * r[1, 2]) / ((1 - r[0, 2] ** 2) * (1 - r[1, 2] ** 2)).sqrt()


def without(x, z, slope=True, centre=True):
    if centre:
        x, z = x - x.mean(), z - z.mean()
    return x - (x @ z / (z @ z) if slope else 1) * z


def cosine(x, y):
    return x @ y / (x.norm() * y.norm())


def faulty_partial(x, y, z, of_x=True, of_y=True, slope=None):
    def rest(values, taken):
        values, common = values - values.mean(), z - z.mean()
        factor = values @ common if slope is None else slope(values, common)
        return values - taken * factor * common

    return cosine(rest(x, of_x), rest(y, of_y))


def with_ones(source, target, new, ridge):
    """A column of ones carries the shift."""
    x = source.reshape(-1, source.shape[-1])
    table = torch.cat([x, torch.ones_like(x[:, :1])], 1)
    penalty = ridge * torch.eye(table.shape[1])
    penalty[-1] = 0
    y = target.reshape(-1, target.shape[-1])
    found = torch.linalg.solve(table.T @ table + penalty, table.T @ y)
    return new @ found[:-1] + found[-1]


def faulty_stitch(
    source, target, new, ridge, penalty=lambda ridge, n: ridge, of_new=None, end=True, centre=True
):
    x, y = source.flatten(0, 1), target.flatten(0, 1)
    x_mean, y_mean = x.mean(0) * centre, y.mean(0) * centre
    x, y = x - x_mean, y - y_mean
    strength = penalty(ridge, len(x))
    A = torch.linalg.solve(x.T @ x + strength * torch.eye(x.shape[1]), x.T @ y)
    return (new - (x_mean if of_new is None else of_new(new))) @ A + y_mean * end


def penalised_shift(source, target, new, ridge):
    x = source.flatten(0, 1)
    table = torch.cat([x, torch.ones_like(x[:, :1])], 1)
    system = table.T @ table + ridge * torch.eye(table.shape[1])
    found = torch.linalg.solve(system, table.T @ target.flatten(0, 1))
    return new @ found[:-1] + found[-1]


CORRECT = {
    "steps_needed": by_counting,
    "main_effects": by_signs,
    "by_weights": by_products,
    "partial_correlation": by_formula,
    "stitched": with_ones,
}

WRONG = {
    "steps_needed": [
        ("not a whole number", partial(faulty_steps, rounding=float)),
        ("One step fewer is not enough", partial(faulty_steps, rounding=math.floor)),
        ("One step fewer is enough", lambda values, share: by_counting(values, share) + 1),
        ("not squared the", partial(faulty_steps, power=1)),
        ("the squared error", partial(faulty_steps, half=2)),
        ("The slowest decides", partial(faulty_steps, which=second_largest)),
    ],
    "main_effects": [
        ("The sign is wrong", lambda results: -by_signs(results)),
        ("half of the effect", lambda results: by_signs(results) / 2),
        (
            "Subtract that without it",
            lambda results: torch.stack([results.select(i, 1).mean() for i in range(results.ndim)]),
        ),
        ("wrong order", lambda results: by_signs(results).flip(0)),
        ("summed over the other", lambda results: by_signs(results) * 2 ** (results.ndim - 1)),
        ("no other trained part", partial(from_corner, corner=0)),
        ("all others are trained", partial(from_corner, corner=1)),
    ],
    "by_weights": [
        ("column by column", by_columns),
        ("The mean is taken", lambda behind, patches: by_matrix(behind, patches) / len(patches)),
        ("before the product", sums_first),
        ("Only the first patch", lambda behind, patches: by_matrix(behind[:, :1], patches[:1])),
    ],
    "partial_correlation": [
        ("The sign is wrong", lambda x, y, z: -by_formula(x, y, z)),
        ("squared correlation", lambda x, y, z: by_formula(x, y, z) ** 2),
        ("z is not used", lambda x, y, z: cosine(x - x.mean(), y - y.mean())),
        ("only from x", partial(faulty_partial, of_y=False, slope=lambda v, z: v @ z / (z @ z))),
        ("only from y", partial(faulty_partial, of_x=False, slope=lambda v, z: v @ z / (z @ z))),
        ("Divide x . z by z . z", faulty_partial),
        (
            "Subtract the means",
            lambda x, y, z: cosine(without(x, z, centre=False), without(y, z, centre=False)),
        ),
    ],
    "stitched": [
        ("target's mean is not added", partial(faulty_stitch, end=False)),
        ("from the new tokens too", partial(faulty_stitch, of_new=lambda new: 0)),
        ("own mean is taken", partial(faulty_stitch, of_new=lambda new: new.mean((0, 1)))),
        ("There is no shift b", partial(faulty_stitch, centre=False)),
        ("ridge is not used", partial(faulty_stitch, penalty=lambda ridge, n: 0)),
        ("ridge is squared", partial(faulty_stitch, penalty=lambda ridge, n: ridge**2)),
        ("ridge is multiplied", partial(faulty_stitch, penalty=lambda ridge, n: ridge * n)),
        ("ridge is divided", partial(faulty_stitch, penalty=lambda ridge, n: ridge / n)),
        ("The shift is penalised", penalised_shift),
    ],
}

LENGTHS = "/ (x.norm() * y.norm())"
MEANS = "x, y, z = ({} for values in (x, y, z))"

EQUIVALENT = {
    "steps_needed": {
        "slowest = 1 - (values.min() / values.max()).item() ** 2 -> "
        "slowest = 1 - (values.min() / values.max()) ** 2": "math.log takes a tensor too",
    },
    "main_effects": {},
    "by_weights": {},
    "partial_correlation": {
        f"{a} -> {b}": "a dot product does not change when its sides are exchanged"
        for a, b in {
            "x = x - x @ z / (z @ z) * z": "x = x - z @ x / (z @ z) * z",
            "y = y - y @ z / (z @ z) * z": "y = y - z @ y / (z @ z) * z",
            f"return x @ y {LENGTHS}": f"return y @ x {LENGTHS}",
        }.items()
    }
    | {
        f"{MEANS.format('values - values.mean()')} -> {MEANS.format('values.mean() - values')}": (
            "with all three signs changed the result is the same"
        ),
    },
    "stitched": {
        "x, y = (x - x_mean, y - y_mean) -> x, y = (x - x_mean, y + y_mean)": (
            "a constant in y is orthogonal to every x of mean 0"
        ),
    },
}
