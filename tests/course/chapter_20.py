import torch


def position_variance(x):
    return torch.stack([sum(f.var(correction=0) for f in one.T) / x.shape[2] for one in x])


def gaussian_weights(places, width):
    table = torch.exp(-torch.cdist(places, places).square() / (2 * width * width))
    return table / table.sum(1, keepdim=True)


def gain_of_averaging(p):
    """Half of the mean squared distance of two members drawn at random."""
    return (p[:, None] - p).square().sum(-1).mean() / 2


def with_weights(x, weights, values, out):
    parts = (x @ values).chunk(len(weights), -1)
    return torch.cat([w @ v for w, v in zip(weights, parts, strict=True)], -1) @ out


EQUIVALENT = [
    ("position_variance", "the sign goes out with the square", "x - x.mean(1, keepdim=True) -> x.mean(1, keepdim=True) - x"),
    ("gaussian_weights", "the sign goes out with the square", "places[:, None] - places -> places - places[:, None]"),
    ("gaussian_weights", "of two axes the last is number 1", "softmax(-1) -> softmax(1)"),
    ("gain_of_averaging", "the sign goes out with the square", "p - p.mean(0) -> p.mean(0) - p"),
]  # fmt: skip
