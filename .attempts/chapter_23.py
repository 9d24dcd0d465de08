WRONG = [
("training_flops", "backward pass forgotten", '''
def training_flops(multiply_adds, images, epochs):
    return 2 * multiply_adds * images * epochs
'''),
("training_flops", "multiply-adds counted as one operation", '''
def training_flops(multiply_adds, images, epochs):
    return 3 * multiply_adds * images * epochs
'''),
("training_flops", "backward as costly as forward: factor 4", '''
def training_flops(multiply_adds, images, epochs):
    return 4 * multiply_adds * images * epochs
'''),
("training_flops", "epochs forgotten", '''
def training_flops(multiply_adds, images, epochs):
    return 6 * multiply_adds * images
'''),
("cost_to_reach", "interpolates the cost itself", '''
def cost_to_reach(accuracy, accuracies, costs):
    return np.interp(accuracy, accuracies, costs)
'''),
("cost_to_reach", "returns the logarithm", '''
def cost_to_reach(accuracy, accuracies, costs):
    return np.interp(accuracy, accuracies, np.log(costs))
'''),
("cost_to_reach", "log10 back with exp", '''
def cost_to_reach(accuracy, accuracies, costs):
    return np.exp(np.interp(accuracy, accuracies, np.log10(costs)))
'''),
("cost_to_reach", "logarithm of both axes", '''
def cost_to_reach(accuracy, accuracies, costs):
    return np.exp(np.interp(np.log(accuracy), np.log(accuracies), np.log(costs)))
'''),
("power_law", "exponent with the wrong sign", '''
def power_law(sizes, errors):
    x, y = sizes.log(), errors.log()
    b = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
    return torch.stack([(y.mean() - b * x.mean()).exp(), b])
'''),
("power_law", "factor left as a logarithm", '''
def power_law(sizes, errors):
    x, y = sizes.log(), errors.log()
    b = -((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
    return torch.stack([y.mean() + b * x.mean(), b])
'''),
("power_law", "order swapped: exponent first", '''
def power_law(sizes, errors):
    x, y = sizes.log(), errors.log()
    b = -((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
    return torch.stack([b, (y.mean() + b * x.mean()).exp()])
'''),
("power_law", "through the first and last point only", '''
def power_law(sizes, errors):
    b = -(errors[-1] / errors[0]).log() / (sizes[-1] / sizes[0]).log()
    return torch.stack([errors[0] * sizes[0] ** b, b])
'''),
("power_law", "line through the errors without their logarithm", '''
def power_law(sizes, errors):
    x, y = sizes.log(), errors
    b = -((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
    return torch.stack([y.mean() + b * x.mean(), b])
'''),
("power_law", "log10 for the line and exp for the factor", '''
def power_law(sizes, errors):
    x, y = sizes.log10(), errors.log10()
    b = -((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
    return torch.stack([(y.mean() + b * x.mean()).exp(), b])
'''),
("gru_step", "gates of old and new exchanged", '''
def gru_step(x, h, w_input, w_state, b_input, b_state):
    ir, iz, i_n = (x @ w_input.mT + b_input).chunk(3, -1)
    sr, sz, sn = (h @ w_state.mT + b_state).chunk(3, -1)
    r, z = (ir + sr).sigmoid(), (iz + sz).sigmoid()
    n = (i_n + r * sn).tanh()
    return z * n + (1 - z) * h
'''),
("gru_step", "reset gate on the state before the product: U_n (r h)", '''
def gru_step(x, h, w_input, w_state, b_input, b_state):
    dim = h.shape[-1]
    ir, iz, i_n = (x @ w_input.mT + b_input).chunk(3, -1)
    sr, sz, _ = (h @ w_state.mT + b_state).chunk(3, -1)
    r, z = (ir + sr).sigmoid(), (iz + sz).sigmoid()
    n = (i_n + (r * h) @ w_state[2 * dim :].mT + b_state[2 * dim :]).tanh()
    return (1 - z) * n + z * h
'''),
("gru_step", "order z, r, n", '''
def gru_step(x, h, w_input, w_state, b_input, b_state):
    iz, ir, i_n = (x @ w_input.mT + b_input).chunk(3, -1)
    sz, sr, sn = (h @ w_state.mT + b_state).chunk(3, -1)
    r, z = (ir + sr).sigmoid(), (iz + sz).sigmoid()
    n = (i_n + r * sn).tanh()
    return (1 - z) * n + z * h
'''),
("gru_step", "sigmoid instead of tanh for n", '''
def gru_step(x, h, w_input, w_state, b_input, b_state):
    ir, iz, i_n = (x @ w_input.mT + b_input).chunk(3, -1)
    sr, sz, sn = (h @ w_state.mT + b_state).chunk(3, -1)
    r, z = (ir + sr).sigmoid(), (iz + sz).sigmoid()
    n = (i_n + r * sn).sigmoid()
    return (1 - z) * n + z * h
'''),
("gru_step", "reset gate left out", '''
def gru_step(x, h, w_input, w_state, b_input, b_state):
    ir, iz, i_n = (x @ w_input.mT + b_input).chunk(3, -1)
    sr, sz, sn = (h @ w_state.mT + b_state).chunk(3, -1)
    z = (iz + sz).sigmoid()
    return (1 - z) * (i_n + sn).tanh() + z * h
'''),
("gru_step", "r multiplies only the product, not its bias c_n", '''
def gru_step(x, h, w_input, w_state, b_input, b_state):
    ir, iz, i_n = (x @ w_input.mT + b_input).chunk(3, -1)
    sr, sz, sn = (h @ w_state.mT).chunk(3, -1)
    br, bz, bn = b_state.chunk(3)
    r, z = (ir + sr + br).sigmoid(), (iz + sz + bz).sigmoid()
    n = (i_n + r * sn + bn).tanh()
    return (1 - z) * n + z * h
'''),
("quantise", "returns the numbers of the rows", '''
def quantise(patches, codebook):
    return torch.cdist(patches, codebook).argmin(-1)
'''),
("quantise", "farthest instead of nearest", '''
def quantise(patches, codebook):
    return codebook[torch.cdist(patches, codebook).argmax(-1)]
'''),
("quantise", "largest inner product instead of the smallest distance", '''
def quantise(patches, codebook):
    return codebook[(patches @ codebook.T).argmax(-1)]
'''),
("quantise", "nearest patch of each code: argmin over the wrong axis", '''
def quantise(patches, codebook):
    return patches[torch.cdist(patches, codebook).argmin(0)]
'''),
("quantise", "distance by cosine", '''
def quantise(patches, codebook):
    s = F.normalize(patches, dim=-1) @ F.normalize(codebook, dim=-1).T
    return codebook[s.argmax(-1)]
'''),
("contrastive_loss", "not divided by the lengths", '''
def contrastive_loss(images, texts, temperature):
    s = images @ texts.T / temperature
    y = torch.arange(len(s))
    return (F.cross_entropy(s, y) + F.cross_entropy(s.T, y)) / 2
'''),
("contrastive_loss", "one direction only", '''
def contrastive_loss(images, texts, temperature):
    s = F.normalize(images, dim=-1) @ F.normalize(texts, dim=-1).T / temperature
    return F.cross_entropy(s, torch.arange(len(s)))
'''),
("contrastive_loss", "multiplied by the temperature", '''
def contrastive_loss(images, texts, temperature):
    s = F.normalize(images, dim=-1) @ F.normalize(texts, dim=-1).T * temperature
    y = torch.arange(len(s))
    return (F.cross_entropy(s, y) + F.cross_entropy(s.T, y)) / 2
'''),
("contrastive_loss", "sum of both directions", '''
def contrastive_loss(images, texts, temperature):
    s = F.normalize(images, dim=-1) @ F.normalize(texts, dim=-1).T / temperature
    y = torch.arange(len(s))
    return F.cross_entropy(s, y) + F.cross_entropy(s.T, y)
'''),
("contrastive_loss", "normalised over the batch, dim=0", '''
def contrastive_loss(images, texts, temperature):
    s = F.normalize(images, dim=0) @ F.normalize(texts, dim=0).T / temperature
    y = torch.arange(len(s))
    return (F.cross_entropy(s, y) + F.cross_entropy(s.T, y)) / 2
'''),
]
RIGHT = [
("cost_to_reach", "powers, by hand", '''
def cost_to_reach(accuracy, accuracies, costs):
    a, c = [float(v) for v in accuracies], [float(v) for v in costs]
    for i in range(len(a) - 1):
        if a[i] <= accuracy <= a[i + 1]:
            t = (accuracy - a[i]) / (a[i + 1] - a[i])
            return c[i] ** (1 - t) * c[i + 1] ** t
'''),
("power_law", "polyfit of numpy", '''
def power_law(sizes, errors):
    slope, intercept = np.polyfit(np.log(np.asarray(sizes)), np.log(np.asarray(errors)), 1)
    return torch.tensor([np.exp(intercept), -slope])
'''),
("gru_step", "nn.GRUCell with the weights put in", '''
def gru_step(x, h, w_input, w_state, b_input, b_state):
    cell = nn.GRUCell(x.shape[-1], h.shape[-1]).to(x.dtype)
    state = {"weight_ih": w_input, "weight_hh": w_state, "bias_ih": b_input, "bias_hh": b_state}
    return torch.func.functional_call(cell, state, (x, h))
'''),
("contrastive_loss", "log_softmax and diagonals", '''
def contrastive_loss(images, texts, temperature):
    a = images / images.norm(dim=1, keepdim=True)
    b = texts / texts.norm(dim=1, keepdim=True)
    s = torch.einsum("id,jd->ij", a, b).div(temperature)
    rows = s.diagonal() - s.logsumexp(1)
    columns = s.diagonal() - s.logsumexp(0)
    return -0.5 * (rows + columns).mean()
'''),
("quantise", "a loop with squared differences", '''
def quantise(patches, codebook):
    return torch.stack([codebook[((codebook - p) ** 2).sum(1).argmin()] for p in patches])
'''),
]
