RI = '''
def robust_images(start, wanted, model, shifts, steps, step_size):
    x = start.clone()
    for _ in range(steps):
        x = x.detach().requires_grad_()
        score = 0
        for s in shifts:
            logits = model(x.roll(tuple(s), (-2, -1)))
            score = score + logits[torch.arange(len(x)), wanted].sum() / len(shifts)
        g = torch.autograd.grad(score, x)[0]
        g = g / g.square().mean((1, 2, 3), keepdim=True).sqrt()
        x = (x + step_size * g).clamp(0, 1)
    return x.detach()
'''
WRONG = [
("scores_on_the_way", "goes away from the constant: wrong sign", '''
def scores_on_the_way(slope, start, constant, step_size, steps):
    x, out = start.clone(), []
    for _ in range(steps):
        o = slope @ x
        out.append(o)
        x = x - step_size * torch.sign(constant - o) * slope
    return torch.stack(out)
'''),
("scores_on_the_way", "scores after each step instead of before", '''
def scores_on_the_way(slope, start, constant, step_size, steps):
    x, out = start.clone(), []
    for _ in range(steps):
        x = x + step_size * torch.sign(constant - slope @ x) * slope
        out.append(slope @ x)
    return torch.stack(out)
'''),
("scores_on_the_way", "descends on the square: step in proportion to the distance", '''
def scores_on_the_way(slope, start, constant, step_size, steps):
    x, out = start.clone(), []
    for _ in range(steps):
        o = slope @ x
        out.append(o)
        x = x + step_size * (constant - o) * slope
    return torch.stack(out)
'''),
("expected_change", "one place too few: jitter instead of jitter + 1", '''
def expected_change(update, jitter):
    c, h, w = update.shape
    out = torch.zeros(c, h + jitter, w + jitter)
    for a in range(jitter):
        for b in range(jitter):
            out[:, a : a + h, b : b + w] += update
    return out / max(jitter, 1) ** 2
'''),
("expected_change", "sum over the places, not the mean", '''
def expected_change(update, jitter):
    c, h, w = update.shape
    out = torch.zeros(c, h + jitter, w + jitter)
    for a in range(jitter + 1):
        for b in range(jitter + 1):
            out[:, a : a + h, b : b + w] += update
    return out
'''),
("expected_change", "divides each pixel by how often it was covered", '''
def expected_change(update, jitter):
    c, h, w = update.shape
    out = torch.zeros(c, h + jitter, w + jitter)
    n = torch.zeros_like(out)
    for a in range(jitter + 1):
        for b in range(jitter + 1):
            out[:, a : a + h, b : b + w] += update
            n[:, a : a + h, b : b + w] += 1
    return out / n
'''),
("step_in_pixels", "weight not squared", '''
def step_in_pixels(gradient, weight, rows, columns):
    return rows.T @ (weight * (rows @ gradient @ columns.T)) @ columns
'''),
("step_in_pixels", "rows and columns transposed", '''
def step_in_pixels(gradient, weight, rows, columns):
    return rows @ (weight ** 2 * (rows.T @ gradient @ columns)) @ columns.T
'''),
("step_in_pixels", "returns the change of the coefficients", '''
def step_in_pixels(gradient, weight, rows, columns):
    return weight * (rows @ gradient @ columns.T)
'''),
("robust_images", "RMS over the whole batch", RI.replace("mean((1, 2, 3), keepdim=True)", "mean()")),
("robust_images", "descends instead of ascending", RI.replace("x + step_size * g", "x - step_size * g")),
("robust_images", "divides by the norm instead of the root mean square", RI.replace("g.square().mean(", "g.square().sum(")),
("robust_images", "not clipped", RI.replace(".clamp(0, 1)", "")),
("robust_images", "clips only at the end", RI.replace(".clamp(0, 1)", "").replace("return x.detach()", "return x.detach().clamp(0, 1)")),
("robust_images", "backward fills in the model's gradients", RI.replace("g = torch.autograd.grad(score, x)[0]", "score.backward(); g = x.grad")),
]
RIGHT = [
("scores_on_the_way", "only the score, no image", '''
def scores_on_the_way(slope, start, constant, step_size, steps):
    o, out = (slope * start).sum(), []
    for _ in range(steps):
        out.append(o)
        o = o - step_size * torch.sign(o - constant) * slope.square().sum()
    return torch.stack(out)
'''),
("expected_change", "transposed convolution with a box", '''
def expected_change(update, jitter):
    k = jitter + 1
    box = torch.full((1, 1, k, k), 1 / k ** 2, dtype=update.dtype)
    return nn.functional.conv_transpose2d(update[:, None], box)[:, 0]
'''),
]
