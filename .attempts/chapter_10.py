SC = '''
def streamed_cka(x, y, batch):
    p, q = x.shape[1], y.shape[1]
    xx, yy, xy = torch.zeros(p, p, dtype=torch.float64), torch.zeros(q, q, dtype=torch.float64), torch.zeros(p, q, dtype=torch.float64)
    sx, sy = torch.zeros(p, dtype=torch.float64), torch.zeros(q, dtype=torch.float64)
    m = len(x)
    for i in range(0, m, batch):
        a, b = x[i : i + batch].double(), y[i : i + batch].double()
        xx += a.T @ a
        yy += b.T @ b
        xy += a.T @ b
        sx += a.sum(0)
        sy += b.sum(0)
    xx -= torch.outer(sx, sx) / m
    yy -= torch.outer(sy, sy) / m
    xy -= torch.outer(sx, sy) / m
    return (xy.square().sum() / (xx.norm() * yy.norm())).item()
'''
WRONG = [
("feature_cka", "not centred", '''
def feature_cka(x, y):
    return (x.T @ y).square().sum() / ((x.T @ x).norm() * (y.T @ y).norm())
'''),
("feature_cka", "makes the matrices of pairs of images", '''
def feature_cka(x, y):
    x, y = x - x.mean(0), y - y.mean(0)
    K, L = x @ x.T, y @ y.T
    return (K * L).sum() / (K.norm() * L.norm())
'''),
("feature_cka", "norm in place of its square in the numerator", '''
def feature_cka(x, y):
    x, y = x - x.mean(0), y - y.mean(0)
    return (x.T @ y).norm() / ((x.T @ x).norm() * (y.T @ y).norm()).sqrt()
'''),
("feature_cka", "centred over features instead of images", '''
def feature_cka(x, y):
    x, y = x - x.mean(1, keepdim=True), y - y.mean(1, keepdim=True)
    return (x.T @ y).square().sum() / ((x.T @ x).norm() * (y.T @ y).norm())
'''),
("place_error", "root of the distance forgotten", '''
def place_error(table):
    R, C = table.shape[:2]
    best = table.flatten(2).argmax(-1)
    r, c = torch.arange(R)[:, None], torch.arange(C)[None]
    return ((best // C - r) ** 2 + (best % C - c) ** 2).float().mean()
'''),
("place_error", "distance along the grid (Manhattan) instead of straight", '''
def place_error(table):
    R, C = table.shape[:2]
    best = table.flatten(2).argmax(-1)
    r, c = torch.arange(R)[:, None], torch.arange(C)[None]
    return ((best // C - r).abs() + (best % C - c).abs()).float().mean()
'''),
("place_error", "the token most like each patch: argmax over the wrong axes", '''
def place_error(table):
    R, C = table.shape[:2]
    best = table.flatten(0, 1).argmax(0)
    r, c = torch.arange(R)[:, None], torch.arange(C)[None]
    return ((best // C - r) ** 2 + (best % C - c) ** 2).float().sqrt().mean()
'''),
("place_error", "divides by the number of rows", '''
def place_error(table):
    R, C = table.shape[:2]
    best = table.flatten(2).argmax(-1)
    r, c = torch.arange(R)[:, None], torch.arange(C)[None]
    return ((best // R - r) ** 2 + (best % R - c) ** 2).float().sqrt().mean()
'''),
("streamed_cka", "mean of the batches' CKAs", '''
def streamed_cka(x, y, batch):
    out = []
    for i in range(0, len(x), batch):
        a, b = x[i : i + batch], y[i : i + batch]
        a, b = a - a.mean(0), b - b.mean(0)
        out.append((a.T @ b).square().sum() / ((a.T @ a).norm() * (b.T @ b).norm()))
    return torch.stack(out).mean().item()
'''),
("streamed_cka", "each batch centred by its own mean", '''
def streamed_cka(x, y, batch):
    xx = yy = xy = 0
    for i in range(0, len(x), batch):
        a, b = x[i : i + batch].double(), y[i : i + batch].double()
        a, b = a - a.mean(0), b - b.mean(0)
        xx, yy, xy = xx + a.T @ a, yy + b.T @ b, xy + a.T @ b
    return (xy.square().sum() / (xx.norm() * yy.norm())).item()
'''),
("streamed_cka", "drops the last, smaller batch", SC.replace("range(0, m, batch)", "range(0, m - batch + 1, batch)")),
("streamed_cka", "product of the sums not divided by m", SC.replace(" / m\n", "\n")),
("left_out", "fitted to all rows: nothing left out", '''
def left_out(x, y, penalty):
    xm, ym = x.mean(0), y.mean(0)
    a = x - xm
    W = torch.linalg.solve(a.T @ a + penalty * torch.eye(a.shape[1]), a.T @ (y - ym))
    return a @ W + ym
'''),
("left_out", "forgets the share of the mean, 1 / n, in S_ii", '''
def left_out(x, y, penalty):
    n = len(x)
    a, b = x - x.mean(0), y - y.mean(0)
    S = a @ torch.linalg.solve(a.T @ a + penalty * torch.eye(a.shape[1], dtype=x.dtype), a.T)
    s = S.diagonal()[:, None]
    fit = S @ b + y.mean(0)
    return (fit - s * y) / (1 - s)
'''),
("left_out", "penalises the bias: a column of ones", '''
def left_out(x, y, penalty):
    a = torch.cat([x, torch.ones(len(x), 1, dtype=x.dtype)], 1)
    S = a @ torch.linalg.solve(a.T @ a + penalty * torch.eye(a.shape[1], dtype=x.dtype), a.T)
    s = S.diagonal()[:, None]
    return (S @ y - s * y) / (1 - s)
'''),
]
RIGHT = [
("place_error", "unravel_index and hypot", '''
def place_error(table):
    import numpy as np
    t = np.asarray(table)
    R, C = t.shape[:2]
    d = [np.hypot(*(np.subtract(np.unravel_index(t[r, c].argmax(), (R, C)), (r, c)))) for r in range(R) for c in range(C)]
    return float(np.mean(d))
'''),
("streamed_cka", "means first in a pass of its own", '''
def streamed_cka(x, y, batch):
    starts = range(0, len(x), batch)
    mx = sum(x[i : i + batch].double().sum(0) for i in starts) / len(x)
    my = sum(y[i : i + batch].double().sum(0) for i in starts) / len(y)
    cut = lambda i: (x[i : i + batch].double() - mx, y[i : i + batch].double() - my)
    xy = sum(a.T @ b for a, b in map(cut, starts))
    xx = sum(a.T @ a for a, b in map(cut, starts))
    yy = sum(b.T @ b for a, b in map(cut, starts))
    return xy.pow(2).sum() / torch.sqrt(xx.pow(2).sum() * yy.pow(2).sum())
'''),
("left_out", "n fits", '''
def left_out(x, y, penalty):
    rows = []
    for i in range(len(x)):
        keep = torch.arange(len(x)) != i
        a, b = x[keep].double(), y[keep].double()
        am, bm = a.mean(0), b.mean(0)
        big = torch.cat([a - am, penalty ** 0.5 * torch.eye(a.shape[1], dtype=a.dtype)])
        W = torch.linalg.pinv(big) @ torch.cat([b - bm, torch.zeros(a.shape[1], b.shape[1], dtype=a.dtype)])
        rows.append((x[i].double() - am) @ W + bm)
    return torch.stack(rows).to(y.dtype)
'''),
]
