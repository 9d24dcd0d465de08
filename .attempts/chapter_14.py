BC = '''
def build_collision(positive, negative, function):
    jac = torch.func.jacrev(function)
    a, b = positive, negative
    for _ in range(60):
        m = (a + b) / 2
        if torch.linalg.det(jac(m)) > 0:
            a = m
        else:
            b = m
    x = (a + b) / 2
    v = torch.linalg.svd(jac(x))[2][-1]
    for t in (0.3, 0.1, 0.03, 0.01, 0.003, 0.001):
        one, z = x + t * v, x - t * v
        for _ in range(50):
            z = z + torch.linalg.solve(jac(z), function(one) - function(z))
        if (function(z) - function(one)).norm() < 1e-10 and (z - one).norm() > 1e-3:
            return torch.stack([one, z])
    raise RuntimeError("not found")
'''
WRONG = [
("queries_from_scores", "forgets the root of d", '''
def queries_from_scores(scores, keys):
    return torch.linalg.lstsq(keys, scores.T).solution.T
'''),
("queries_from_scores", "divides by the root of d instead of multiplying", '''
def queries_from_scores(scores, keys):
    d = keys.shape[-1]
    return torch.linalg.lstsq(keys, scores.T / d ** 0.5).solution.T
'''),
("queries_from_scores", "result not transposed back", '''
def queries_from_scores(scores, keys):
    d = keys.shape[-1]
    return torch.linalg.lstsq(keys, scores.T * d ** 0.5).solution
'''),
("queries_from_scores", "multiplies by the keys instead of solving", '''
def queries_from_scores(scores, keys):
    return scores @ keys * keys.shape[-1] ** 0.5
'''),
("queries_from_scores", "root of the number of keys in place of d", '''
def queries_from_scores(scores, keys):
    return math.sqrt(len(keys)) * scores @ torch.linalg.pinv(keys).T
'''),
("undo_residual", "subtracts from the newest guess instead of y", '''
def undo_residual(y, branch, steps):
    x = y
    for _ in range(steps):
        x = x - branch(x)
    return x
'''),
("undo_residual", "branch always applied to y", '''
def undo_residual(y, branch, steps):
    x = y
    for _ in range(steps):
        x = y - branch(y)
    return x
'''),
("undo_residual", "adds the branch", '''
def undo_residual(y, branch, steps):
    x = y
    for _ in range(steps):
        x = y + branch(x)
    return x
'''),
("undo_residual", "one step too many", '''
def undo_residual(y, branch, steps):
    x = y - branch(y)
    for _ in range(steps):
        x = y - branch(x)
    return x
'''),
("undo_residual", "begins at zero", '''
def undo_residual(y, branch, steps):
    x = torch.zeros_like(y)
    for _ in range(steps):
        x = y - branch(x)
    return x
'''),
("asymptotic_rate", "largest singular value: the stretch of one step", '''
def asymptotic_rate(x, branch):
    return torch.linalg.svdvals(torch.func.jacrev(branch)(x)).max()
'''),
("asymptotic_rate", "only real parts of the eigenvalues", '''
def asymptotic_rate(x, branch):
    return torch.linalg.eigvals(torch.func.jacrev(branch)(x)).real.abs().max()
'''),
("asymptotic_rate", "eigenvalues of I + J", '''
def asymptotic_rate(x, branch):
    J = torch.func.jacrev(branch)(x)
    return torch.linalg.eigvals(torch.eye(len(x), dtype=x.dtype) + J).abs().max()
'''),
("asymptotic_rate", "eigvalsh although J is not symmetric", '''
def asymptotic_rate(x, branch):
    return torch.linalg.eigvalsh(torch.func.jacrev(branch)(x)).abs().max()
'''),
("held_attention", "matrix not transposed: W instead of W^T in the blocks", '''
def held_attention(weights, w_v, w_out):
    heads, n, _ = weights.shape
    d = w_v.shape[0] // heads
    return sum(torch.kron(weights[h].contiguous(), (w_v[:, h*d:(h+1)*d] @ w_out[h*d:(h+1)*d]).contiguous()) for h in range(heads))
'''),
("held_attention", "kron in the wrong order: features outside, tokens inside", '''
def held_attention(weights, w_v, w_out):
    heads, n, _ = weights.shape
    d = w_v.shape[0] // heads
    return sum(torch.kron((w_v[:, h*d:(h+1)*d] @ w_out[h*d:(h+1)*d]).T.contiguous(), weights[h].contiguous()) for h in range(heads))
'''),
("held_attention", "heads not told apart: mean weights with the whole matrices", '''
def held_attention(weights, w_v, w_out):
    return torch.kron(weights.mean(0).contiguous(), (w_v @ w_out).T.contiguous())
'''),
("held_attention", "columns of w_out sliced instead of rows", '''
def held_attention(weights, w_v, w_out):
    heads, n, _ = weights.shape
    dim = w_v.shape[0]
    d = dim // heads
    total = 0
    for h in range(heads):
        c = slice(h * d, (h + 1) * d)
        W = torch.zeros(dim, dim, dtype=w_v.dtype)
        W[:, c] = w_v @ w_out[:, c]
        total = total + torch.kron(weights[h].contiguous(), W.T.contiguous())
    return total
'''),
("held_attention", "weights transposed", '''
def held_attention(weights, w_v, w_out):
    heads, n, _ = weights.shape
    d = w_v.shape[0] // heads
    return sum(torch.kron(weights[h].T.contiguous(), (w_v[:, h*d:(h+1)*d] @ w_out[h*d:(h+1)*d]).T.contiguous()) for h in range(heads))
'''),
("build_collision", "no Newton step: outputs agree only nearly", '''
def build_collision(positive, negative, function):
    jac = torch.func.jacrev(function)
    a, b = positive, negative
    for _ in range(50):
        m = (a + b) / 2
        a, b = (m, b) if torch.linalg.det(jac(m)) > 0 else (a, m)
    v = torch.linalg.svd(jac(a))[2][-1]
    return torch.stack([a + 0.001 * v, a - 0.001 * v])
'''),
("build_collision", "the two inputs merge: starts Newton from the same side", BC.replace("x + t * v, x - t * v", "x + t * v, x + 1.1 * t * v").replace(" and (z - one).norm() > 1e-3", "")),
("build_collision", "first singular vector instead of the last, no distance test", BC.replace("[2][-1]", "[2][0]").replace("< 1e-10 and (z - one).norm() > 1e-3", "< 1e-3")),
("build_collision", "returns the two ends of the line", '''
def build_collision(positive, negative, function):
    return torch.stack([positive, negative])
'''),
]
RIGHT = [
("queries_from_scores", "normal equations solved from the right", '''
def queries_from_scores(scores, keys):
    return torch.linalg.solve(keys.T @ keys, scores @ keys, left=False) * keys.size(1) ** 0.5
'''),
("asymptotic_rate", "numpy's eigenvalues, autograd's jacobian", '''
def asymptotic_rate(x, branch):
    import numpy as np
    J = torch.autograd.functional.jacobian(branch, x)
    return float(np.abs(np.linalg.eigvals(J.numpy())).max())
'''),
("held_attention", "jacobian of the layer", '''
def held_attention(weights, w_v, w_out):
    heads, n, _ = weights.shape
    dim = len(w_v)
    def layer(flat):
        v = (flat.view(n, dim) @ w_v).view(n, heads, -1)
        return (torch.einsum("hij,jhd->ihd", weights, v).reshape(n, dim) @ w_out).flatten()
    return torch.func.jacrev(layer)(torch.zeros(n * dim, dtype=w_v.dtype))
'''),
("build_collision", "bisection and Newton as in the hint", BC),
]
