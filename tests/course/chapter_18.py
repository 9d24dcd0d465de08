import torch


def hessian_product(w, v, loss):
    return torch.func.jvp(torch.func.grad(loss), (w,), (v,))[1]


def sharpest(start, product, steps):
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


def tridiagonal(start, product, steps):
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


def three_terms(start, product, steps):
    """Makes each new vector orthogonal to the last two alone."""
    basis, T = [start / start.norm()], torch.zeros(steps, steps)
    for k in range(steps):
        w = product(basis[k])
        T[k, k] = basis[k] @ w
        for q in basis[-2:]:
            w = w - (q @ w) * q
        if k + 1 < steps:
            T[k, k + 1] = T[k + 1, k] = w.norm()
            basis.append(w / w.norm())
    return T


def negative_share(T):
    points, vectors = torch.linalg.eigh(T)
    parts = vectors[0] ** 2 * points
    return (1 - parts.sum() / parts.abs().sum()) / 2


def filter_scaled(direction, weight):
    if weight.ndim < 2:
        return torch.zeros_like(direction)
    rows = [d / d.norm() * w.norm() for d, w in zip(direction, weight, strict=True)]
    return torch.stack(rows)


WRONG = [
    ("hessian_product", "Never make the Hessian", lambda w, v, loss: torch.func.hessian(loss)(w) @ v),
    ("sharpest", "the vector overflows", never_scaled),
    ("sharpest", "another method", all_at_once),
    ("tridiagonal", "beside the three middle diagonals", lambda *a: tridiagonal(*a) + 0.1),
    ("tridiagonal", "not symmetric", lambda *a: tridiagonal(*a).triu()),
    ("tridiagonal", "appears more than once", three_terms),
]  # fmt: skip

EQUIVALENT = [
    ("hessian_product", "a dot product has no order", "torch.func.grad(loss)(w) @ v -> v @ torch.func.grad(loss)(w)"),
    ("sharpest", "a dot product has no order", "v @ product(v) -> product(v) @ v"),
    ("tridiagonal", "a dot product has no order", "basis[k] @ rest -> rest @ basis[k]"),
    ("tridiagonal", "in float64 once is enough for these sizes", "range(2) -> range(1)"),
    ("tridiagonal", "a third time changes nothing", "range(2) -> range(3)"),
    ("tridiagonal", "k + 1 is never more than the steps", "k + 1 < -> k + 1 !="),
    ("tridiagonal", "the second time turns the sign back", "rest - Q.T @ (Q @ rest) -> Q.T @ (Q @ rest) - rest"),
    ("negative_share", "a point at 0 has no size", "< 0 -> <= 0"),
    ("filter_scaled", "direction and weight have one shape", "weight.ndim -> direction.ndim", "view_as(direction) -> view_as(weight)", "zeros_like(direction) -> zeros_like(weight)"),
]  # fmt: skip
