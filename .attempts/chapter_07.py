WRONG = [
("training_step", "gradients not cleared", '''
def training_step(model, images, labels, optimizer, smoothing=0.0):
    loss = F.cross_entropy(model(images), labels, label_smoothing=smoothing)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()
'''),
("training_step", "clears the gradients between backward and step", '''
def training_step(model, images, labels, optimizer, smoothing=0.0):
    loss = F.cross_entropy(model(images), labels, label_smoothing=smoothing)
    loss.backward()
    optimizer.zero_grad()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()
'''),
("training_step", "no clipping", '''
def training_step(model, images, labels, optimizer, smoothing=0.0):
    loss = F.cross_entropy(model(images), labels, label_smoothing=smoothing)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()
'''),
("training_step", "smoothing ignored", '''
def training_step(model, images, labels, optimizer, smoothing=0.0):
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()
'''),
("training_step", "clips each number (clip_grad_value_) instead of the length", '''
def training_step(model, images, labels, optimizer, smoothing=0.0):
    loss = F.cross_entropy(model(images), labels, label_smoothing=smoothing)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()
'''),
("training_step", "clips before the backward pass", '''
def training_step(model, images, labels, optimizer, smoothing=0.0):
    loss = F.cross_entropy(model(images), labels, label_smoothing=smoothing)
    optimizer.zero_grad()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    loss.backward()
    optimizer.step()
    return loss.item()
'''),
("training_step", "softmax before cross_entropy", '''
def training_step(model, images, labels, optimizer, smoothing=0.0):
    loss = F.cross_entropy(model(images).softmax(-1), labels, label_smoothing=smoothing)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()
'''),
("training_step", "returns the loss after the step", '''
def training_step(model, images, labels, optimizer, smoothing=0.0):
    loss = F.cross_entropy(model(images), labels, label_smoothing=smoothing)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return F.cross_entropy(model(images), labels, label_smoothing=smoothing).item()
'''),
("mixed_loss", "share and 1 - share exchanged", '''
def mixed_loss(logits, labels, order, share, smoothing):
    a = F.cross_entropy(logits, labels, label_smoothing=smoothing)
    b = F.cross_entropy(logits, labels[order], label_smoothing=smoothing)
    return (1 - share) * a + share * b
'''),
("mixed_loss", "smoothing left out", '''
def mixed_loss(logits, labels, order, share, smoothing):
    a = F.cross_entropy(logits, labels)
    b = F.cross_entropy(logits, labels[order])
    return share * a + (1 - share) * b
'''),
("mixed_loss", "mixes the logits instead of the targets", '''
def mixed_loss(logits, labels, order, share, smoothing):
    mixed = share * logits + (1 - share) * logits[order]
    return F.cross_entropy(mixed, labels, label_smoothing=smoothing)
'''),
("mixed_loss", "uses the order the wrong way round (inverse permutation)", '''
def mixed_loss(logits, labels, order, share, smoothing):
    other = torch.empty_like(labels)
    other[order] = labels
    a = F.cross_entropy(logits, labels, label_smoothing=smoothing)
    b = F.cross_entropy(logits, other, label_smoothing=smoothing)
    return share * a + (1 - share) * b
'''),
("mixed_loss", "sum over the batch instead of the mean", '''
def mixed_loss(logits, labels, order, share, smoothing):
    f = lambda y: F.cross_entropy(logits, y, label_smoothing=smoothing, reduction="sum")
    return share * f(labels) + (1 - share) * f(labels[order])
'''),
("paired_interval", "1.96 instead of Student's t", '''
def paired_interval(a, b):
    d = a - b
    h = 1.96 * d.std() / len(d) ** 0.5
    return torch.stack([d.mean() - h, d.mean(), d.mean() + h])
'''),
("paired_interval", "not paired: adds the variances of a and b", '''
def paired_interval(a, b):
    n = len(a)
    m = (a - b).mean()
    s = (a.var() + b.var()).sqrt()
    h = stats.t.ppf(0.975, n - 1) * s / n ** 0.5
    return torch.stack([m - h, m, m + h])
'''),
("paired_interval", "deviation divided by n", '''
def paired_interval(a, b):
    d = (a - b).numpy()
    h = stats.t.ppf(0.975, len(d) - 1) * np.std(d) / np.sqrt(len(d))
    return torch.tensor([d.mean() - h, d.mean(), d.mean() + h])
'''),
("paired_interval", "not divided by the root of n", '''
def paired_interval(a, b):
    d = a - b
    h = stats.t.ppf(0.975, len(d) - 1) * d.std()
    return torch.stack([d.mean() - h, d.mean(), d.mean() + h])
'''),
("paired_interval", "95 % point instead of 97.5 %", '''
def paired_interval(a, b):
    d = a - b
    h = stats.t.ppf(0.95, len(d) - 1) * d.std() / len(d) ** 0.5
    return torch.stack([d.mean() - h, d.mean(), d.mean() + h])
'''),
("paired_interval", "b minus a", '''
def paired_interval(a, b):
    d = b - a
    h = stats.t.ppf(0.975, len(d) - 1) * d.std() / len(d) ** 0.5
    return torch.stack([d.mean() - h, d.mean(), d.mean() + h])
'''),
("best_temperature", "returns 1 / T", '''
def best_temperature(logits, labels):
    from scipy.optimize import minimize_scalar
    z = logits.double()
    f = lambda u: F.cross_entropy(z * math.exp(u), labels).item()
    return math.exp(minimize_scalar(f, bounds=(math.log(0.05), math.log(20)), method="bounded").x)
'''),
("best_temperature", "a coarse grid of temperatures, one digit", '''
def best_temperature(logits, labels):
    grid = torch.arange(0.1, 20, 0.1)
    losses = torch.stack([F.cross_entropy(logits / t, labels) for t in grid])
    return grid[losses.argmin()].item()
'''),
("best_temperature", "minimises the difference of confidence and accuracy instead of the cross-entropy", '''
def best_temperature(logits, labels):
    acc = (logits.argmax(-1) == labels).double().mean()
    lo, hi = math.log(0.05), math.log(20)
    for _ in range(60):
        mid = (lo + hi) / 2
        conf = (logits.double() / math.exp(mid)).softmax(-1).amax(-1).mean()
        lo, hi = (mid, hi) if conf > acc else (lo, mid)
    return math.exp(lo)
'''),
("sharp_gradient", "steps downhill: minus rho", '''
def sharp_gradient(weights, gradient, rho):
    g = gradient(weights)
    if g.norm() == 0:
        return g
    return gradient(weights - rho * g / g.norm())
'''),
("sharp_gradient", "the gradient not divided by its length", '''
def sharp_gradient(weights, gradient, rho):
    g = gradient(weights)
    return gradient(weights + rho * g)
'''),
("sharp_gradient", "NaN where the gradient is zero", '''
def sharp_gradient(weights, gradient, rho):
    g = gradient(weights)
    return gradient(weights + rho * g / g.norm())
'''),
("sharp_gradient", "returns the place, not the gradient there", '''
def sharp_gradient(weights, gradient, rho):
    g = gradient(weights)
    n = g.norm()
    return weights + rho * g / n if n > 0 else g
'''),
]
RIGHT = [
("training_step", "model.zero_grad, CE by hand, clipping by hand", '''
def training_step(model, images, labels, optimizer, smoothing=0.0):
    model.zero_grad()
    log_p = model(images).log_softmax(-1)
    right = log_p[torch.arange(len(labels)), labels]
    loss = -((1 - smoothing) * right + smoothing * log_p.mean(-1)).mean()
    loss.backward()
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    length = torch.stack([g.norm() for g in grads]).norm()
    if length > 1:
        for g in grads:
            g.div_(length)
    optimizer.step()
    return float(loss)
'''),
("mixed_loss", "targets as one-hot probabilities", '''
def mixed_loss(logits, labels, order, share, smoothing):
    one = F.one_hot(labels, logits.shape[1]).to(logits.dtype)
    q = (1 - smoothing) * one + smoothing / logits.shape[1]
    q = share * q + (1 - share) * q[order]
    return -(q * logits.log_softmax(1)).sum(1).mean()
'''),
("paired_interval", "scipy's own interval, numpy", '''
def paired_interval(a, b):
    d = np.asarray(a, dtype=float) - np.asarray(b, dtype=float)
    low, high = stats.t.interval(0.95, len(d) - 1, d.mean(), stats.sem(d))
    return torch.tensor([low, d.mean(), high])
'''),
("best_temperature", "L-BFGS on log T", '''
def best_temperature(logits, labels):
    u = torch.zeros((), dtype=torch.float64, requires_grad=True)
    opt = torch.optim.LBFGS([u], max_iter=200, tolerance_grad=1e-10, tolerance_change=1e-14, line_search_fn="strong_wolfe")
    def closure():
        opt.zero_grad()
        loss = F.cross_entropy(logits.double() * torch.exp(-u), labels)
        loss.backward()
        return loss
    opt.step(closure)
    return u.exp().item()
'''),
("sharp_gradient", "F.normalize with its eps", '''
def sharp_gradient(weights, gradient, rho):
    g = gradient(weights)
    return gradient(weights + rho * F.normalize(g, dim=0)) if g.any() else g
'''),
]
