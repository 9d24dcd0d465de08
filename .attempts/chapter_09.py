WRONG = [
("effective_keys", "exponential after the mean over queries", '''
def effective_keys(weights):
    return torch.special.entr(weights).sum(-1).mean(-1).exp()
'''),
("effective_keys", "NaN where a weight is zero", '''
def effective_keys(weights):
    return (-(weights * weights.log()).sum(-1)).exp().mean(-1)
'''),
("effective_keys", "entropy without the exponential", '''
def effective_keys(weights):
    return torch.special.entr(weights).sum(-1).mean(-1)
'''),
("effective_keys", "inverse of the sum of squares, as in the chapter", '''
def effective_keys(weights):
    return (1 / weights.square().sum(-1)).mean(-1)
'''),
("mean_offset", "row and column exchanged", '''
def mean_offset(weights, rows, columns):
    i = torch.arange(rows * columns)
    p = torch.stack([i % columns, i // columns], -1).float()
    return (weights @ p - p).mean(1)
'''),
("mean_offset", "query minus key: signs reversed", '''
def mean_offset(weights, rows, columns):
    i = torch.arange(rows * columns)
    p = torch.stack([i // columns, i % columns], -1).float()
    return (p - weights @ p).mean(1)
'''),
("mean_offset", "absolute distances: directions lost", '''
def mean_offset(weights, rows, columns):
    i = torch.arange(rows * columns)
    p = torch.stack([i // columns, i % columns], -1).float()
    d = (p[None] - p[:, None]).abs()
    return torch.einsum("hqk,qkc->hc", weights, d) / len(p)
'''),
("mean_offset", "divides by rows instead of columns", '''
def mean_offset(weights, rows, columns):
    i = torch.arange(rows * columns)
    p = torch.stack([i // rows, i % rows], -1).float()
    return (weights @ p - p).mean(1)
'''),
("relevance", "mean over heads before negative entries are cut off", '''
def relevance(weights, gradients):
    R = torch.eye(weights.shape[-1])
    for A, G in zip(weights, gradients):
        R = R + (A * G).mean(0).clamp(min=0) @ R
    return R
'''),
("relevance", "multiplied on the wrong side: R @ A", '''
def relevance(weights, gradients):
    R = torch.eye(weights.shape[-1])
    for A, G in zip(weights, gradients):
        R = R + R @ (A * G).clamp(min=0).mean(0)
    return R
'''),
("relevance", "last block first", '''
def relevance(weights, gradients):
    R = torch.eye(weights.shape[-1])
    for A, G in zip(weights.flip(0), gradients.flip(0)):
        R = R + (A * G).clamp(min=0).mean(0) @ R
    return R
'''),
("integrated_gradients", "left end of each step instead of its middle", '''
def integrated_gradients(images, baseline, score, steps):
    total = 0
    for k in range(steps):
        p = (baseline + k / steps * (images - baseline)).requires_grad_()
        total = total + torch.autograd.grad(score(p).sum(), p)[0]
    return (images - baseline) * total / steps
'''),
("integrated_gradients", "multiplies by the image instead of image less baseline", '''
def integrated_gradients(images, baseline, score, steps):
    total = 0
    for k in range(steps):
        p = (baseline + (k + 0.5) / steps * (images - baseline)).requires_grad_()
        total = total + torch.autograd.grad(score(p).sum(), p)[0]
    return images * total / steps
'''),
("integrated_gradients", "mean of the scores instead of their sum: gradients divided by the batch", '''
def integrated_gradients(images, baseline, score, steps):
    total = 0
    for k in range(steps):
        p = (baseline + (k + 0.5) / steps * (images - baseline)).requires_grad_()
        total = total + torch.autograd.grad(score(p).mean(), p)[0]
    return (images - baseline) * total / steps
'''),
("integrated_gradients", "not divided by the number of steps", '''
def integrated_gradients(images, baseline, score, steps):
    total = 0
    for k in range(steps):
        p = (baseline + (k + 0.5) / steps * (images - baseline)).requires_grad_()
        total = total + torch.autograd.grad(score(p).sum(), p)[0]
    return (images - baseline) * total
'''),
]
RIGHT = [
("effective_keys", "xlogy and exp", '''
effective_keys = lambda weights: torch.exp(-torch.xlogy(weights, weights).sum(2)).mean(1)
'''),
("integrated_gradients", "all steps as one batch, func.grad", '''
def integrated_gradients(images, baseline, score, steps):
    def one(x):
        t = (torch.arange(steps, dtype=x.dtype).view(-1, 1, 1, 1) + 0.5) / steps
        g = torch.func.grad(lambda p: score(p).sum())(torch.lerp(baseline.expand(steps, *x.shape), x.expand(steps, *x.shape), t))
        return (x - baseline) * g.mean(0)
    return torch.stack([one(x) for x in images]).detach()
'''),
]
