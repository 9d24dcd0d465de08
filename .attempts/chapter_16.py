UN = '''
def unused_numbers(x, module):
    parameters = list(module.parameters())
    out = module(x)
    torch.manual_seed(1)
    grads = torch.autograd.grad((out * torch.randn_like(out)).sum(), parameters, allow_unused=True)
    return sum(p.numel() if g is None else int((g == 0).sum()) for p, g in zip(parameters, grads))
'''
WRONG = [
("steps_for", "rounds down", '''
def steps_for(values, share):
    return int(math.log(share) / math.log(1 - (values.min() / values.max()).item() ** 2))
'''),
("steps_for", "ratio not squared", '''
def steps_for(values, share):
    return math.ceil(math.log(share) / math.log(1 - (values.min() / values.max()).item()))
'''),
("steps_for", "second value instead of the faintest: values taken as sorted", '''
def steps_for(values, share):
    r = (values[-1] / values[0]).item() ** 2
    return math.ceil(math.log(share) / math.log(1 - r)) if r < 1 else 1
'''),
("block_without", "residual also missing when attention is: Y = 0", '''
def block_without(x, missing, norm1, attention, norm2, mlp):
    i = lambda t: t
    n1, n2 = (i, i) if missing == "norm" else (norm1, norm2)
    keep = 0 if missing == "residual" else 1
    y = keep * x + (attention(n1(x)) if missing != "attention" else 0)
    if missing == "attention":
        y = n1(x)
    return keep * y + (mlp(n2(y)) if missing != "mlp" else 0)
'''),
("block_without", "without residual only the first is taken out", '''
def block_without(x, missing, norm1, attention, norm2, mlp):
    if missing == "norm":
        norm1 = norm2 = lambda t: t
    if missing == "residual":
        y = attention(norm1(x))
    else:
        y = x + attention(norm1(x)) if missing != "attention" else x
    return y if missing == "mlp" else y + mlp(norm2(y))
'''),
("block_without", "without norm only norm1 is left out", '''
def block_without(x, missing, norm1, attention, norm2, mlp):
    if missing == "norm":
        norm1 = lambda t: t
    k = 0.0 if missing == "residual" else 1.0
    y = x if missing == "attention" else k * x + attention(norm1(x))
    return y if missing == "mlp" else k * y + mlp(norm2(y))
'''),
("unused_numbers", "gradient of the plain sum", UN.replace("(out * torch.randn_like(out)).sum()", "out.sum()")),
("unused_numbers", "parameters outside the graph not counted", UN.replace("p.numel() if g is None else int((g == 0).sum())", "0 if g is None else int((g == 0).sum())")),
("unused_numbers", "counts parameters (tensors), not numbers", UN.replace("p.numel() if g is None else int((g == 0).sum())", "int(g is None or not g.any())")),
("unused_numbers", "leaves gradients in the module", '''
def unused_numbers(x, module):
    out = module(x)
    (out * torch.randn_like(out)).sum().backward()
    return sum(p.numel() if p.grad is None else int((p.grad == 0).sum()) for p in module.parameters())
'''),
("largest_value", "returns the square", '''
def largest_value(start, push, pull, steps):
    v = start / start.norm()
    for _ in range(steps):
        u = pull(push(v))
        v = u / u.norm()
    return push(v).norm() ** 2
'''),
("largest_value", "vector never normalised", '''
def largest_value(start, push, pull, steps):
    v = start
    for _ in range(steps):
        v = pull(push(v))
    return push(v).norm() / v.norm()
'''),
("largest_value", "start not normalised in the estimate when steps is 0: length left in", '''
def largest_value(start, push, pull, steps):
    v = start
    for _ in range(steps):
        u = pull(push(v))
        v = u / u.max()
    return push(v).norm()
'''),
("recovered_fast", "plain gradient descent", '''
def recovered_fast(target, push, pull, steps):
    x = torch.zeros_like(pull(target))
    v = torch.randn_like(x)
    for _ in range(20):
        v = pull(push(v))
        n = v.norm()
        v = v / n
    for _ in range(steps - 20):
        x = x - pull(push(x) - target) / n
    return x
'''),
("recovered_fast", "steepest descent: direction always the new s", '''
def recovered_fast(target, push, pull, steps):
    r = target
    s = pull(r)
    x = torch.zeros_like(s)
    for _ in range(steps):
        q = push(s)
        a = s @ s / (q @ q)
        x, r = x + a * s, r - a * q
        s = pull(r)
    return x
'''),
("recovered_fast", "ratio of the squares upside down", '''
def recovered_fast(target, push, pull, steps):
    r = target
    s = pull(r)
    x, p = torch.zeros_like(s), s
    for _ in range(steps):
        q = push(p)
        a = s @ s / (q @ q)
        x, r = x + a * p, r - a * q
        new = pull(r)
        p = new + p * (s @ s) / (new @ new)
        s = new
    return x
'''),
]
RIGHT = [
("steps_for", "log1p in torch, ceil", '''
def steps_for(values, share):
    v = values.double()
    rate = torch.log1p(-(v.min() / v.max()).square())
    return int(torch.ceil(math.log(share) / rate))
'''),
("block_without", "a table of parts", '''
def block_without(x, missing, norm1, attention, norm2, mlp):
    for norm, part, name in [(norm1, attention, "attention"), (norm2, mlp, "mlp")]:
        if missing == name:
            continue
        change = part(x if missing == "norm" else norm(x))
        x = change if missing == "residual" else x + change
    return x
'''),
("recovered_fast", "conjugate gradients on the normal equations", '''
def recovered_fast(target, push, pull, steps):
    b = pull(target)
    x = torch.zeros_like(b)
    r = b.clone()
    p = r.clone()
    for _ in range(steps - 1):
        if r @ r == 0:
            break
        Ap = pull(push(p))
        alpha = (r @ r) / (p @ Ap)
        x = x + alpha * p
        new = r - alpha * Ap
        p = new + (new @ new) / (r @ r) * p
        r = new
    return x
'''),
]
