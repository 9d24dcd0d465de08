ST = '''
def stitched(source, target, new, ridge):
    x, y = source.flatten(0, 1), target.flatten(0, 1)
    mx, my = x.mean(0), y.mean(0)
    X, Y = x - mx, y - my
    A = torch.linalg.solve(X.T @ X + ridge * torch.eye(X.shape[1], dtype=X.dtype), X.T @ Y)
    return (new - mx) @ A + my
'''
WRONG = [
("steps_needed", "step from the smallest direction missing: uses the mean of the values", '''
def steps_needed(values, share):
    v = values.double()
    import math
    return math.ceil(math.log(share) / math.log(1 - (v.mean() / v.max()).item() ** 2))
'''),
("steps_needed", "not squared", '''
def steps_needed(values, share):
    import math
    v = values.double()
    return math.ceil(math.log(share) / math.log(1 - (v.min() / v.max()).item()))
'''),
("steps_needed", "rounds down", '''
def steps_needed(values, share):
    v = values.double()
    return int(np.log(share) / np.log(1 - (v.min() / v.max()).item() ** 2))
'''),
("main_effects", "compares with all others at 0 only", '''
def main_effects(results):
    k = results.dim()
    base = results[(0,) * k]
    return torch.stack([results[tuple(int(i == j) for j in range(k))] - base for i in range(k)])
'''),
("main_effects", "sums instead of means", '''
def main_effects(results):
    return torch.stack([results.select(i, 1).sum() - results.select(i, 0).sum() for i in range(results.dim())])
'''),
("main_effects", "without minus with", '''
def main_effects(results):
    return torch.stack([results.select(i, 0).mean() - results.select(i, 1).mean() for i in range(results.dim())])
'''),
("main_effects", "with the part less the overall mean", '''
def main_effects(results):
    return torch.stack([results.select(i, 1).mean() - results.mean() for i in range(results.dim())])
'''),
("by_weights", "W read column by column", '''
def by_weights(behind, patches):
    return torch.einsum("otd,tn->ond", behind, patches).flatten(1)
'''),
("by_weights", "mean over tokens instead of the sum", '''
def by_weights(behind, patches):
    return (torch.einsum("otd,tn->odn", behind, patches) / len(patches)).flatten(1)
'''),
("by_weights", "sums behind and patches separately", '''
def by_weights(behind, patches):
    return torch.einsum("od,n->odn", behind.sum(1), patches.sum(0)).flatten(1)
'''),
("partial_correlation", "without intercept: means not subtracted", '''
def partial_correlation(x, y, z):
    a = x - (x @ z) / (z @ z) * z
    b = y - (y @ z) / (z @ z) * z
    return a @ b / (a.norm() * b.norm())
'''),
("partial_correlation", "z taken from x only: semipartial", '''
def partial_correlation(x, y, z):
    x, y, z = x - x.mean(), y - y.mean(), z - z.mean()
    a = x - (x @ z) / (z @ z) * z
    return a @ y / (a.norm() * y.norm())
'''),
("partial_correlation", "ordinary correlation, z ignored", '''
def partial_correlation(x, y, z):
    return torch.corrcoef(torch.stack([x, y]))[0, 1]
'''),
("partial_correlation", "covariance of the remainders instead of the correlation", '''
def partial_correlation(x, y, z):
    x, y, z = x - x.mean(), y - y.mean(), z - z.mean()
    a, b = x - (x @ z) / (z @ z) * z, y - (y @ z) / (z @ z) * z
    return a @ b / len(a)
'''),
("stitched", "no shift", '''
def stitched(source, target, new, ridge):
    X, Y = source.flatten(0, 1), target.flatten(0, 1)
    A = torch.linalg.solve(X.T @ X + ridge * torch.eye(X.shape[1], dtype=X.dtype), X.T @ Y)
    return new @ A
'''),
("stitched", "new centred by its own mean", ST.replace("(new - mx)", "(new - new.mean((0, 1)))")),
("stitched", "shift penalised: column of ones in the ridge", '''
def stitched(source, target, new, ridge):
    one = lambda t: torch.cat([t, torch.ones_like(t[..., :1])], -1)
    X, Y = one(source).flatten(0, 1), target.flatten(0, 1)
    A = torch.linalg.solve(X.T @ X + ridge * torch.eye(X.shape[1], dtype=X.dtype), X.T @ Y)
    return one(new) @ A
'''),
("stitched", "a matrix for each token position", '''
def stitched(source, target, new, ridge):
    out = []
    for t in range(source.shape[1]):
        x, y = source[:, t], target[:, t]
        mx, my = x.mean(0), y.mean(0)
        X, Y = x - mx, y - my
        A = torch.linalg.pinv(X.T @ X + ridge * torch.eye(X.shape[1], dtype=X.dtype)) @ X.T @ Y
        out.append((new[:, t] - mx) @ A + my)
    return torch.stack(out, 1)
'''),
("stitched", "ridge ignored", ST.replace("ridge * ", "0 * ")),
]
RIGHT = [
("main_effects", "a mask of bits of the flat index", '''
def main_effects(results):
    k = results.ndim
    flat, i = results.flatten(), torch.arange(2 ** k)
    signs = torch.stack([((i >> (k - 1 - a)) & 1) * 2.0 - 1 for a in range(k)]).to(results.dtype)
    return signs @ flat / 2 ** (k - 1)
'''),
("partial_correlation", "from the three correlations", '''
def partial_correlation(x, y, z):
    c = np.corrcoef([x.tolist(), y.tolist(), z.tolist()])
    xy, xz, yz = c[0, 1], c[0, 2], c[1, 2]
    return float((xy - xz * yz) / np.sqrt((1 - xz ** 2) * (1 - yz ** 2)))
'''),
("stitched", "augmented least squares with an unpenalised column", '''
def stitched(source, target, new, ridge):
    x, y = source.reshape(-1, source.shape[-1]), target.reshape(-1, target.shape[-1])
    one = torch.cat([x, torch.ones(len(x), 1, dtype=x.dtype)], 1)
    penalty = torch.eye(one.shape[1], dtype=x.dtype)
    penalty[-1, -1] = 0
    M = torch.linalg.solve(one.T @ one + ridge * penalty, one.T @ y)
    return new @ M[:-1] + M[-1]
'''),
]
