WRONG = [
("with_statistics", "mean and std of y used although beta and gamma shift them: affine map not undone", '''
def with_statistics(y, gamma, beta, mean, std):
    return y * std + mean
'''),
("with_statistics", "gamma undone before beta", '''
def with_statistics(y, gamma, beta, mean, std):
    return (y / gamma - beta) * std + mean
'''),
("with_statistics", "mean and std exchanged", '''
def with_statistics(y, gamma, beta, mean, std):
    return (y - beta) / gamma * mean + std
'''),
("with_statistics", "mean added before multiplying by std", '''
def with_statistics(y, gamma, beta, mean, std):
    return ((y - beta) / gamma + mean) * std
'''),
("with_statistics", "std squared: taken for the variance", '''
def with_statistics(y, gamma, beta, mean, std):
    return (y - beta) / gamma * std.sqrt() + mean
'''),
("rms_input", "returns y / gamma, the size lost", '''
def rms_input(y, gamma, eps):
    return y / gamma
'''),
("rms_input", "mean subtracted", '''
def rms_input(y, gamma, eps):
    w = y / gamma
    m = w.var(-1, keepdim=True, unbiased=False)
    return w * torch.sqrt(eps / (1 - m))
'''),
("rms_input", "1 + m instead of 1 - m", '''
def rms_input(y, gamma, eps):
    w = y / gamma
    m = w.square().mean(-1, keepdim=True)
    return w * torch.sqrt(eps / (1 + m))
'''),
("rms_input", "multiplies by the root of q instead of q + eps", '''
def rms_input(y, gamma, eps):
    w = y / gamma
    m = w.square().mean(-1, keepdim=True)
    q = eps * m / (1 - m)
    return w * q.sqrt()
'''),
("rms_input", "gamma not undone", '''
def rms_input(y, gamma, eps):
    m = y.square().mean(-1, keepdim=True)
    return y * torch.sqrt(eps / (1 - m))
'''),
("rms_input", "sum of squares instead of mean square", '''
def rms_input(y, gamma, eps):
    w = y / gamma
    m = w.square().sum(-1, keepdim=True)
    return w * torch.sqrt(eps / (1 - m))
'''),
("norm_pullback", "gamma multiplied at the end instead of first", '''
def norm_pullback(x, gamma, eps, g):
    c = x - x.mean(-1, keepdim=True)
    s = torch.sqrt(c.square().mean(-1, keepdim=True) + eps)
    z = c / s
    return gamma / s * (g - g.mean(-1, keepdim=True) - z * (g * z).mean(-1, keepdim=True))
'''),
("norm_pullback", "dot product with z not divided by d", '''
def norm_pullback(x, gamma, eps, g):
    c = x - x.mean(-1, keepdim=True)
    s = torch.sqrt(c.square().mean(-1, keepdim=True) + eps)
    z, h = c / s, g * gamma
    return (h - h.mean(-1, keepdim=True) - z * (h * z).sum(-1, keepdim=True)) / s
'''),
("norm_pullback", "statistics held fixed: only divides by s", '''
def norm_pullback(x, gamma, eps, g):
    s = torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + eps)
    return g * gamma / s
'''),
("norm_pullback", "mean not subtracted from the gradient", '''
def norm_pullback(x, gamma, eps, g):
    c = x - x.mean(-1, keepdim=True)
    s = torch.sqrt(c.square().mean(-1, keepdim=True) + eps)
    z, h = c / s, g * gamma
    return (h - z * (h * z).mean(-1, keepdim=True)) / s
'''),
("norm_pullback", "not divided by s", '''
def norm_pullback(x, gamma, eps, g):
    c = x - x.mean(-1, keepdim=True)
    z = c / torch.sqrt(c.square().mean(-1, keepdim=True) + eps)
    h = g * gamma
    return h - h.mean(-1, keepdim=True) - z * (h * z).mean(-1, keepdim=True)
'''),
("norm_pullback", "z without eps: divided by the bare deviation", '''
def norm_pullback(x, gamma, eps, g):
    c = x - x.mean(-1, keepdim=True)
    d = c.square().mean(-1, keepdim=True)
    z, h = c / d.sqrt(), g * gamma
    return (h - h.mean(-1, keepdim=True) - z * (h * z).mean(-1, keepdim=True)) / torch.sqrt(d + eps)
'''),
("forgotten", "projection onto what is kept", '''
def forgotten(x, function, tolerance):
    J = torch.func.jacrev(function)(x)
    _, s, v = torch.linalg.svd(J, full_matrices=False)
    v = v[s > tolerance * s[0]]
    return v.T @ v
'''),
("forgotten", "left singular vectors", '''
def forgotten(x, function, tolerance):
    J = torch.func.jacrev(function)(x)
    u, s, _ = torch.linalg.svd(J)
    k = int((s > tolerance * s[0]).sum())
    return torch.eye(len(u), dtype=x.dtype) - u[:, :k] @ u[:, :k].T
'''),
("forgotten", "misses directions without a singular value", '''
def forgotten(x, function, tolerance):
    J = torch.func.jacrev(function)(x)
    _, s, v = torch.linalg.svd(J, full_matrices=False)
    v = v[s <= tolerance * s[0]]
    return v.T @ v
'''),
("forgotten", "tolerance taken as absolute", '''
def forgotten(x, function, tolerance):
    J = torch.func.jacrev(function)(x)
    _, s, v = torch.linalg.svd(J)
    v = v[int((s > tolerance).sum()):]
    return v.T @ v
'''),
("forgotten", "columns of V^T taken for the vectors", '''
def forgotten(x, function, tolerance):
    J = torch.func.jacrev(function)(x)
    _, s, v = torch.linalg.svd(J)
    v = v[:, int((s > tolerance * s[0]).sum()):]
    return v @ v.T
'''),
("patches_behind_rms", "scale taken as 1", '''
def patches_behind_rms(y, gamma, weight, offset):
    return (y / gamma - offset) @ torch.linalg.pinv(weight).T
'''),
("patches_behind_rms", "gamma not undone", '''
def patches_behind_rms(y, gamma, weight, offset):
    n = weight.shape[1]
    A = torch.cat([weight.expand(*y.shape[:2], -1, -1), -y[..., None]], -1)
    t = -offset[None, ..., None].expand(len(y), -1, -1, -1)
    return torch.linalg.lstsq(A, t).solution[..., :n, 0]
'''),
("patches_behind_rms", "sign of the offset wrong", '''
def patches_behind_rms(y, gamma, weight, offset):
    n = weight.shape[1]
    w = y / gamma
    A = torch.cat([weight.expand(*y.shape[:2], -1, -1), -w[..., None]], -1)
    t = offset[None, ..., None].expand(len(y), -1, -1, -1)
    return torch.linalg.lstsq(A, t).solution[..., :n, 0]
'''),
("patches_behind_rms", "returns the scale along with the patch (last column kept, first dropped)", '''
def patches_behind_rms(y, gamma, weight, offset):
    n = weight.shape[1]
    w = y / gamma
    A = torch.cat([w[..., None], -weight.expand(*y.shape[:2], -1, -1)], -1)
    t = offset[None, ..., None].expand(len(y), -1, -1, -1)
    return torch.linalg.lstsq(A, t).solution[..., :n, 0]
'''),
]
RIGHT = [
("with_statistics", "addcmul / normalises again, in place on a clone", '''
def with_statistics(y, gamma, beta, mean, std):
    z = (y - beta) * gamma.reciprocal()
    return torch.addcmul(mean, z, std)
'''),
("norm_pullback", "einsum with a formula of PyTorch's backward", '''
def norm_pullback(x, gamma, eps, g):
    d = x.shape[-1]
    mu = x.mean(-1, keepdim=True)
    rstd = torch.rsqrt(((x - mu) ** 2).sum(-1, keepdim=True) / d + eps)
    h = g * gamma
    dot = torch.einsum("btd,btd->bt", h, x - mu)[..., None]
    return rstd * (h - h.sum(-1, keepdim=True) / d) - (x - mu) * dot * rstd ** 3 / d
'''),
("forgotten", "identity minus pinv(J_kept) J_kept, numpy rank", '''
def forgotten(x, function, tolerance):
    J = torch.autograd.functional.jacobian(function, x)
    values, vectors = torch.linalg.eigh(J.T @ J)
    lost = vectors[:, values.clamp(min=0).sqrt() <= tolerance * values[-1].sqrt()]
    return lost @ lost.T
'''),
("patches_behind_rms", "project W out, then the scale is a ratio", '''
def patches_behind_rms(y, gamma, weight, offset):
    q, _ = torch.linalg.qr(weight)
    out = lambda t: t - t @ q @ q.T
    w = y / gamma
    a = (out(w) * out(offset)).sum(-1, keepdim=True) / out(w).square().sum(-1, keepdim=True)
    return torch.linalg.lstsq(weight, (a * w - offset).flatten(0, 1).T).solution.T.unflatten(0, y.shape[:2])
'''),
]
