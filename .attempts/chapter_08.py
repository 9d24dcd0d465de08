WRONG = [
("on_one_scale", "each filter scaled on its own", '''
def on_one_scale(filters):
    m = filters.abs().amax((1, 2, 3), keepdim=True)
    return 0.5 + 0.5 * filters / m.clamp(min=1e-12)
'''),
("on_one_scale", "min-max scaling: 0 does not become 0.5", '''
def on_one_scale(filters):
    low, high = filters.min(), filters.max()
    if low == high:
        return torch.full_like(filters, 0.5)
    return (filters - low) / (high - low)
'''),
("on_one_scale", "NaN where all weights are zero", '''
def on_one_scale(filters):
    return filters / (2 * filters.abs().max()) + 0.5
'''),
("on_one_scale", "largest weight without its sign ignored: values below 0", '''
def on_one_scale(filters):
    m = filters.max()
    return 0.5 + 0.5 * filters / m if m > 0 else torch.full_like(filters, 0.5)
'''),
("share_in_span", "takes the images as orthonormal", '''
def share_in_span(filters, images):
    f = F.normalize(filters.flatten(1), dim=1)
    g = F.normalize(images.flatten(1), dim=1)
    return (f @ g.T).square().sum(1)
'''),
("share_in_span", "root forgotten in reverse: returns the norm's share, not the squared norm's", '''
def share_in_span(filters, images):
    f, g = filters.flatten(1), images.flatten(1)
    p = f @ torch.linalg.pinv(g) @ g
    return p.norm(dim=1) / f.norm(dim=1)
'''),
("share_in_span", "QR without regard to images that are sums of others", '''
def share_in_span(filters, images):
    f, g = filters.flatten(1), images.flatten(1)
    q, _ = torch.linalg.qr(g.T)
    return (f @ q).square().sum(1) / f.square().sum(1)
'''),
("cosine_by_offset", "dot products instead of cosines", '''
def cosine_by_offset(table):
    R, C, _ = table.shape
    out = torch.zeros(2 * R - 1, 2 * C - 1)
    for a in range(-R + 1, R):
        for b in range(-C + 1, C):
            there = table[max(a, 0) : R + min(a, 0), max(b, 0) : C + min(b, 0)]
            here = table[max(-a, 0) : R + min(-a, 0), max(-b, 0) : C + min(-b, 0)]
            out[R - 1 + a, C - 1 + b] = (there * here).sum(-1).mean()
    return out
'''),
("cosine_by_offset", "wraps around with roll", '''
def cosine_by_offset(table):
    R, C, _ = table.shape
    t = F.normalize(table, dim=-1)
    out = torch.zeros(2 * R - 1, 2 * C - 1)
    for a in range(-R + 1, R):
        for b in range(-C + 1, C):
            out[R - 1 + a, C - 1 + b] = (t * t.roll((-a, -b), (0, 1))).sum(-1).mean()
    return out
'''),
("cosine_by_offset", "negative column offsets get the value of the positive ones", '''
def cosine_by_offset(table):
    R, C, _ = table.shape
    t = F.normalize(table, dim=-1)
    out = torch.zeros(2 * R - 1, 2 * C - 1)
    for a in range(R):
        for b in range(C):
            v = (t[a:, b:] * t[: R - a, : C - b]).sum(-1).mean()
            for sa in (a, -a):
                for sb in (b, -b):
                    out[R - 1 + sa, C - 1 + sb] = v
    return out
'''),
("matched_similarity", "best partner for each filter, partners used more than once", '''
def matched_similarity(a, b):
    s = (F.normalize(a.flatten(1), dim=1) @ F.normalize(b.flatten(1), dim=1).T).abs()
    return s.max(1).values.mean().item()
'''),
("matched_similarity", "greedy: best pair first", '''
def matched_similarity(a, b):
    s = (F.normalize(a.flatten(1), dim=1) @ F.normalize(b.flatten(1), dim=1).T).abs()
    total = 0.0
    for _ in range(len(a)):
        i = s.argmax()
        r, c = i // s.shape[1], i % s.shape[1]
        total += s[r, c].item()
        s[r, :] = -1
        s[:, c] = -1
    return total / len(a)
'''),
("matched_similarity", "sign not ignored", '''
def matched_similarity(a, b):
    from scipy.optimize import linear_sum_assignment
    s = F.normalize(a.flatten(1), dim=1) @ F.normalize(b.flatten(1), dim=1).T
    r, c = linear_sum_assignment(s, maximize=True)
    return s[r, c].abs().mean().item()
'''),
("matched_similarity", "minimises instead of maximising", '''
def matched_similarity(a, b):
    from scipy.optimize import linear_sum_assignment
    s = (F.normalize(a.flatten(1), dim=1) @ F.normalize(b.flatten(1), dim=1).T).abs()
    r, c = linear_sum_assignment(s)
    return s[r, c].mean().item()
'''),
]
RIGHT = [
("share_in_span", "least squares with the residual, float64 numpy", '''
def share_in_span(filters, images):
    import numpy as np
    f = filters.flatten(1).double().numpy().T
    g = images.flatten(1).double().numpy().T
    x = np.linalg.lstsq(g, f, rcond=1e-6)[0]
    return torch.tensor(((g @ x) ** 2).sum(0) / (f ** 2).sum(0)).float()
'''),
("cosine_by_offset", "scatter over all pairs", '''
def cosine_by_offset(table):
    R, C, _ = table.shape
    t = (table / table.norm(dim=-1, keepdim=True)).flatten(0, 1)
    r = torch.arange(R).repeat_interleave(C)
    c = torch.arange(C).repeat(R)
    at = (r[None] - r[:, None] + R - 1) * (2 * C - 1) + c[None] - c[:, None] + C - 1
    total = torch.zeros((2 * R - 1) * (2 * C - 1), dtype=table.dtype).index_add_(0, at.flatten(), (t @ t.T).flatten())
    return (total / torch.bincount(at.flatten())).view(2 * R - 1, 2 * C - 1)
'''),
]
