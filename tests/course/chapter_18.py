"""Chapter 18: answers that learners might give."""

from functools import partial

import torch


def forward_over_reverse(w, v, loss):
    return torch.func.jvp(torch.func.grad(loss), (w,), (v,))[1]


def whole_hessian(w, v, loss):
    return torch.func.hessian(loss)(w) @ v


def by_ratio(start, product, steps):
    """Reads the eigenvalue off as a quotient of two products, without keeping unit length."""
    v = start / start.abs().max()
    for _ in range(steps):
        v = product(v)
        v = v / v.abs().max()
    return ((v @ product(v)) / (v @ v)).item()


def never_scaled(start, product, steps):
    v = start
    for _ in range(steps):
        v = product(v)
    return (v @ product(v)) / (v @ v)


def all_at_once(start, product, steps):
    """From the whole matrix, by reading it off with products."""
    A = torch.stack([product(row) for row in torch.eye(len(start))])
    values = torch.linalg.eigvalsh(A)
    return values[values.abs().argmax()]


def from_a_basis(start, product, steps):
    """Keeps the basis and takes the small matrix from it at the end."""
    basis = [start / start.norm()]
    while len(basis) < steps:
        w = product(basis[-1])
        for _ in range(3):
            for q in basis:
                w = w - (q @ w) * q
        basis.append(w / w.norm())
    Q = torch.stack(basis)
    T = Q @ torch.stack([product(q) for q in Q]).T
    inside = (torch.arange(steps)[:, None] - torch.arange(steps)).abs() <= 1
    return torch.where(inside, (T + T.T) / 2, torch.zeros_like(T))


def faulty_lanczos(start, product, steps, rounds=2, unit=True, above=True, below=True, full=True):
    q = start / start.norm() if unit else start
    basis, T = [], torch.zeros(steps, steps, dtype=start.dtype)
    for k in range(steps):
        basis.append(q)
        w = product(q)
        T[k, k] = q @ w
        Q = torch.stack(basis if full else basis[-2:])
        for _ in range(rounds):
            w = w - Q.T @ (Q @ w)
        if k + 1 < steps:
            if above:
                T[k, k + 1] = w.norm()
            if below:
                T[k + 1, k] = w.norm()
            q = w / w.norm()
    return T


def without_orthogonality(start, product, steps):
    """The small matrix of a basis that is not orthogonal."""
    basis = [start / start.norm()]
    while len(basis) < steps:
        w = product(basis[-1])
        basis.append(w / w.norm())
    Q = torch.stack(basis)
    return Q @ torch.stack([product(q) for q in Q]).T


def by_columns(T):
    total = below = 0.0
    points, vectors = torch.linalg.eigh(T)
    for i, point in enumerate(points.tolist()):
        part = vectors[0, i].item() ** 2 * abs(point)
        total += part
        below += part * (point < 0)
    return below / total


def row_by_row(direction, weight):
    if weight.ndim < 2:
        return torch.zeros_like(direction)
    rows = [d / d.norm() * w.norm() for d, w in zip(direction, weight, strict=True)]
    return torch.stack(rows)


CORRECT = {
    "hessian_product": forward_over_reverse,
    "sharpest": by_ratio,
    "tridiagonal": from_a_basis,
    "negative_share": by_columns,
    "filter_scaled": row_by_row,
}

WRONG = {
    "hessian_product": [
        
        ("Never make the Hessian", whole_hessian),
    ],
    "sharpest": [
        ("the vector overflows", never_scaled),
        ("another method", all_at_once),
    ],
    "tridiagonal": [
        ("beside the three middle diagonals", without_orthogonality),
        
        
        ("not symmetric", partial(faulty_lanczos, below=False)),
        ("appears more than once", partial(faulty_lanczos, full=False, rounds=1)),
    ],
    
}  # fmt: skip

NO_ORDER = "a dot product has no order"
SAME_SHAPE = "direction and weight have one shape"
NEVER_BEYOND = "k + 1 is never more than the steps"

EQUIVALENT = {
    "hessian_product": {
        "return torch.func.grad(loss)(w) @ v -> return v @ torch.func.grad(loss)(w)": NO_ORDER,
    },
    "sharpest": {
        "return v @ product(v) -> return product(v) @ v": NO_ORDER,
    },
    "tridiagonal": {
        "T[k, k] = basis[k] @ rest -> T[k, k] = rest @ basis[k]": NO_ORDER,
        "for _ in range(2): -> for _ in range(1):": "in float64 once is enough for these sizes",
        "for _ in range(2): -> for _ in range(3):": "a third time changes nothing",
        "if k + 1 < steps: -> if k + 1 != steps:": NEVER_BEYOND,
        "if k + 1 < steps: -> if k + 1 is not steps:": NEVER_BEYOND,
        "rest = rest - Q.T @ (Q @ rest) -> rest = Q.T @ (Q @ rest) - rest": (
            "the second time turns the sign back"
        ),
    },
    "negative_share": {
        "return size[points < 0].sum() / size.sum() -> return size[points <= 0].sum() / size.sum()": (
            "a point at 0 has no size"
        ),
    },
    "filter_scaled": {
        "if weight.ndim < 2: -> if direction.ndim < 2:": SAME_SHAPE,
        "return rows.view_as(direction) -> return rows.view_as(weight)": SAME_SHAPE,
        "return torch.zeros_like(direction) -> return torch.zeros_like(weight)": SAME_SHAPE,
    },
}
