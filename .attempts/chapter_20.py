WRONG = [
("position_variance", "unbiased variance", '''
def position_variance(x):
    return x.var(dim=1).mean(-1)
'''),
("position_variance", "variance over features", '''
def position_variance(x):
    return x.var(dim=2, unbiased=False).mean(-1)
'''),
("position_variance", "mean over tokens and features subtracted", '''
def position_variance(x):
    return (x - x.mean((1, 2), keepdim=True)).square().mean((1, 2))
'''),
("position_variance", "standard deviation", '''
def position_variance(x):
    return x.std(dim=1, unbiased=False).mean(-1)
'''),
("position_variance", "sum over the features instead of the mean", '''
def position_variance(x):
    return x.var(dim=1, unbiased=False).sum(-1)
'''),
("gaussian_weights", "distance not squared", '''
def gaussian_weights(places, width):
    return (-torch.cdist(places.float(), places.float()) / (2 * width ** 2)).softmax(-1)
'''),
("gaussian_weights", "factor 2 missing", '''
def gaussian_weights(places, width):
    d = torch.cdist(places.float(), places.float())
    return (-d.square() / width ** 2).softmax(-1)
'''),
("gaussian_weights", "sigma not squared", '''
def gaussian_weights(places, width):
    d = torch.cdist(places.float(), places.float())
    return (-d.square() / (2 * width)).softmax(-1)
'''),
("gaussian_weights", "not normalised", '''
def gaussian_weights(places, width):
    d = torch.cdist(places.float(), places.float())
    return torch.exp(-d.square() / (2 * width ** 2))
'''),
("gaussian_weights", "columns sum to 1 instead of rows", '''
def gaussian_weights(places, width):
    d = torch.cdist(places.float(), places.float())
    return (-d.square() / (2 * width ** 2)).softmax(0)
'''),
("gain_of_averaging", "mean over the classes instead of the sum", '''
def gain_of_averaging(p):
    return (p - p.mean(0)).square().mean()
'''),
("gain_of_averaging", "divided by members - 1", '''
def gain_of_averaging(p):
    return p.var(0).sum(-1).mean()
'''),
("gain_of_averaging", "sum over the members", '''
def gain_of_averaging(p):
    return (p - p.mean(0)).square().sum((0, 2)).mean()
'''),
("gain_of_averaging", "distance from the mean over images", '''
def gain_of_averaging(p):
    return (p - p.mean(1, keepdim=True)).square().sum(-1).mean()
'''),
("with_weights", "features interleaved: head is the fast axis", '''
def with_weights(x, weights, values, out):
    h = len(weights)
    v = (x @ values).unflatten(-1, (-1, h))
    return torch.einsum("hij,bjdh->bidh", weights, v).flatten(2) @ out
'''),
("with_weights", "out forgotten", '''
def with_weights(x, weights, values, out):
    v = (x @ values).unflatten(-1, (len(weights), -1))
    return torch.einsum("hij,bjhd->bihd", weights, v).flatten(2)
'''),
("with_weights", "weights transposed", '''
def with_weights(x, weights, values, out):
    v = (x @ values).unflatten(-1, (len(weights), -1))
    return torch.einsum("hji,bjhd->bihd", weights, v).flatten(2) @ out
'''),
("with_weights", "mean of the heads' weights for all features", '''
def with_weights(x, weights, values, out):
    return weights.mean(0) @ (x @ values) @ out
'''),
]
RIGHT = [
("position_variance", "mean of squares less square of means", '''
def position_variance(x):
    return ((x ** 2).mean(1) - x.mean(1) ** 2).sum(1) / x.shape[2]
'''),
("gain_of_averaging", "mean over pairs of members", '''
def gain_of_averaging(p):
    m = len(p)
    pairs = (p[:, None] - p[None]).pow(2).sum(-1).mean(-1)
    return float(pairs.sum() / (2 * m * m))
'''),
("with_weights", "loop over heads", '''
def with_weights(x, weights, values, out):
    parts = [a @ v for a, v in zip(weights, torch.chunk(x @ values, len(weights), dim=-1))]
    return torch.cat(parts, dim=-1) @ out
'''),
]
