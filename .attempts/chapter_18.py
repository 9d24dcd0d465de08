WRONG = [
("hessian_product", "the gradient times the vector: one number or g * v", '''
def hessian_product(w, v, loss):
    return torch.func.grad(loss)(w) * v
'''),
("hessian_product", "builds the Hessian", '''
def hessian_product(w, v, loss):
    return torch.func.hessian(loss)(w) @ v
'''),
("hessian_product", "finite difference of gradients with a large step", '''
def hessian_product(w, v, loss):
    g = torch.func.grad(loss)
    return (g(w + 0.1 * v) - g(w)) / 0.1
'''),
("hessian_product", "v^T H v: one number", '''
def hessian_product(w, v, loss):
    f = lambda u: torch.func.grad(loss)(u) @ v
    return torch.func.grad(f)(w) @ v
'''),
("sharpest", "length of the product: the sign is lost", '''
def sharpest(start, product, steps):
    v = start / start.norm()
    for _ in range(steps):
        v = product(v)
        v = v / v.norm()
    return product(v).norm()
'''),
("sharpest", "never normalised: overflow", '''
def sharpest(start, product, steps):
    v = start
    for _ in range(steps):
        v = product(v)
    return v @ product(v) / (v @ v)
'''),
("sharpest", "not divided by v.v", '''
def sharpest(start, product, steps):
    v = start
    for _ in range(steps):
        v = product(v)
        v = v / v.abs().max()
    return v @ product(v)
'''),
("tridiagonal", "orthogonalised against the last two only, once", '''
def tridiagonal(start, product, steps):
    T = torch.zeros(steps, steps, dtype=start.dtype)
    q, old, beta = start / start.norm(), torch.zeros_like(start), 0.0
    for k in range(steps):
        r = product(q)
        T[k, k] = q @ r
        r = r - T[k, k] * q - beta * old
        beta = r.norm()
        if k + 1 < steps:
            T[k, k + 1] = T[k + 1, k] = beta
        old, q = q, r / beta
    return T
'''),
("tridiagonal", "only the upper diagonal filled", '''
def tridiagonal(start, product, steps):
    T = torch.zeros(steps, steps, dtype=start.dtype)
    Q = (start / start.norm())[None]
    for k in range(steps):
        r = product(Q[k])
        T[k, k] = Q[k] @ r
        for _ in range(2):
            r = r - Q.T @ (Q @ r)
        if k + 1 < steps:
            T[k, k + 1] = r.norm()
            Q = torch.cat([Q, (r / r.norm())[None]])
    return T
'''),
("tridiagonal", "start not scaled to length 1", '''
def tridiagonal(start, product, steps):
    T = torch.zeros(steps, steps, dtype=start.dtype)
    Q = start[None]
    for k in range(steps):
        r = product(Q[k])
        T[k, k] = Q[k] @ r
        for _ in range(2):
            r = r - Q.T @ (Q @ r)
        if k + 1 < steps:
            T[k, k + 1] = T[k + 1, k] = r.norm()
            Q = torch.cat([Q, (r / r.norm())[None]])
    return T
'''),
("negative_share", "counts eigenvalues instead of weighting them by size and first entry", '''
def negative_share(T):
    return (torch.linalg.eigvalsh(T) < 0).double().mean()
'''),
("negative_share", "first entries not squared", '''
def negative_share(T):
    e, U = torch.linalg.eigh(T)
    w = U[0].abs() * e.abs()
    return w[e < 0].sum() / w.sum()
'''),
("negative_share", "weights left out: all eigenvalues of T equal", '''
def negative_share(T):
    e = torch.linalg.eigvalsh(T)
    return -e[e < 0].sum() / e.abs().sum()
'''),
("negative_share", "first column of the eigenvectors instead of the first row", '''
def negative_share(T):
    e, U = torch.linalg.eigh(T)
    w = U[:, 0] ** 2 * e.abs()
    return w[e < 0].sum() / w.sum()
'''),
("filter_scaled", "whole tensor scaled to the length of the whole weight", '''
def filter_scaled(direction, weight):
    if weight.dim() == 1:
        return torch.zeros_like(weight)
    return direction * weight.norm() / direction.norm()
'''),
("filter_scaled", "columns instead of filters", '''
def filter_scaled(direction, weight):
    if weight.dim() == 1:
        return torch.zeros_like(weight)
    d, w = direction.flatten(1), weight.flatten(1)
    return (d / d.norm(dim=0) * w.norm(dim=0)).reshape(weight.shape)
'''),
("filter_scaled", "biases scaled as well, not zero", '''
def filter_scaled(direction, weight):
    d, w = direction.flatten(1) if direction.dim() > 1 else direction[:, None], weight.flatten(1) if weight.dim() > 1 else weight[:, None]
    return (d * w.norm(dim=1, keepdim=True) / d.norm(dim=1, keepdim=True)).reshape(weight.shape)
'''),
("filter_scaled", "multiplied by the weight's length without dividing by its own", '''
def filter_scaled(direction, weight):
    if weight.dim() == 1:
        return torch.zeros_like(weight)
    return direction * weight.flatten(1).norm(dim=1).view(-1, *[1] * (weight.dim() - 1))
'''),
]
RIGHT = [
("hessian_product", "forward over reverse", '''
hessian_product = lambda w, v, loss: torch.func.jvp(torch.func.grad(loss), (w,), (v,))[1]
'''),
("sharpest", "the quotient from the last product, steps products and one", '''
def sharpest(start, product, steps):
    v = start.double() / start.double().norm()
    for _ in range(steps):
        u = product(v.to(start.dtype)).double()
        v = u / u.norm()
    return (torch.dot(v, product(v.to(start.dtype)).double())).item()
'''),
("filter_scaled", "a loop over the filters", '''
def filter_scaled(direction, weight):
    if weight.ndim < 2:
        return 0 * weight
    return torch.stack([d / torch.linalg.vector_norm(d) * torch.linalg.vector_norm(w) for d, w in zip(direction, weight)])
'''),
]
