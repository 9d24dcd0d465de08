"""Chapter 20: answers that learners might give."""

from functools import partial

import torch


def by_features(x):
    return torch.stack([sum(f.var(correction=0) for f in one.T) / x.shape[2] for one in x])


def faulty_variance(x, centre=1, over=(1, 2), end=lambda y: y):
    y = x - x.mean(centre, keepdim=True) if centre is not None else x
    return end(y.square().mean(over))


def by_distances(places, width):
    table = torch.exp(-torch.cdist(places, places).square() / (2 * width * width))
    return table / table.sum(1, keepdim=True)


def faulty_weights(places, width, power=2, half=2.0, sign=-1, end=None):
    distance = (places[:, None] - places).square().sum(-1).sqrt()
    table = torch.exp(sign * distance**power / (half * width**power))
    return end(table) if end else table / table.sum(1, keepdim=True)


def by_pairs(p):
    """Half of the mean squared distance of two members drawn at random."""
    return (p[:, None] - p).square().sum(-1).mean() / 2


def faulty_gain(p, over=0, classes=torch.sum, end=torch.mean):
    y = p if over is None else p - p.mean(over, keepdim=True)
    return end(classes(y.square(), -1))


def by_chunks(x, weights, values, out):
    parts = (x @ values).chunk(len(weights), -1)
    return torch.cat([w @ v for w, v in zip(weights, parts, strict=True)], -1) @ out


def faulty_heads(x, weights, values, out, split="b n (h d) -> b h n d", change=lambda w: w):
    from einops import rearrange

    v = rearrange(x @ values, split, h=len(weights))
    return rearrange(change(weights) @ v, f"b h n d -> {split.split(' -> ')[0]}") @ out


CORRECT = {
    "position_variance": by_features,
    "gaussian_weights": by_distances,
    "gain_of_averaging": by_pairs,
    "with_weights": by_chunks,
}

WRONG = {
    "position_variance": [
        ("squares are added up", lambda x: 15 * by_features(x)),
        ("tokens minus 1", lambda x: x.var(1).mean(1)),
        ("standard deviation", lambda x: by_features(x).sqrt()),
        ("add up the features", lambda x: x.var(1, correction=0).sum(1)),
        ("variance of the features of each token", lambda x: x.var(2, correction=0).mean(1)),
        ("All images are mixed", lambda x: by_features(x).mean().expand(2)),
        ("do not subtract the mean", partial(faulty_variance, centre=None)),
        ("one mean for all features", partial(faulty_variance, centre=(1, 2))),
    ],
    "gaussian_weights": [
        ("rows do not sum to 1", partial(faulty_weights, end=lambda t: t)),
        ("columns sum to 1", partial(faulty_weights, end=lambda t: t / t.sum(0))),
        ("whole table sums to 1", partial(faulty_weights, end=lambda t: t / t.sum())),
        ("minus sign is missing", partial(faulty_weights, sign=1)),
        ("distance is not squared", lambda places, width: faulty_weights(places, width, power=1)),
        ("The 2 under", partial(faulty_weights, half=1.0)),
        ("width is not squared", lambda places, width: faulty_weights(places, width**0.5)),
        ("keep to itself", lambda places, width: faulty_weights(places, max(width, 1.0))),
        ("nearly equal", lambda places, width: faulty_weights(places, min(width, 2.0))),
    ],
    "gain_of_averaging": [
        ("mean over the classes. A squared", partial(faulty_gain, classes=torch.mean)),
        ("add up the images", lambda p: p.shape[1] * by_pairs(p)),
        ("add up the members", lambda p: len(p) * by_pairs(p)),
        ("number of members minus 1", lambda p: p.var(0).sum(-1).mean()),
        ("not its square", lambda p: (p - p.mean(0)).norm(dim=-1).mean()),
        ("mean over the images is taken", partial(faulty_gain, over=1)),
        ("mean over the classes is taken", partial(faulty_gain, over=2)),
        ("mean square of the predictions", partial(faulty_gain, over=None)),
    ],
    "with_weights": [
        ("output map is not", lambda x, w, v, o: by_chunks(x, w, v, torch.eye(8).to(x))),
        ("map to values is not", lambda x, w, v, o: by_chunks(x, w, torch.eye(8).to(x), o)),
        ("weights are transposed", lambda x, w, v, o: by_chunks(x, w.mT, v, o)),
        (
            "mean of the heads' weights",
            partial(faulty_heads, change=lambda w: w.mean(0).expand_as(w)),
        ),
        ("different heads", partial(faulty_heads, split="b n (d h) -> b h n d")),
        ("multiply the tokens from the right", lambda x, w, v, o: by_chunks(x, w, v.T, o.T)),
        ("input is added", lambda x, w, v, o: x + by_chunks(x, w, v, o)),
    ],
}

SIGN = "the sign goes out with the square"

EQUIVALENT = {
    "position_variance": {
        "centred = x - x.mean(1, keepdim=True) -> centred = x.mean(1, keepdim=True) - x": SIGN
    },
    "gaussian_weights": {
        "steps = places[:, None] - places -> steps = places - places[:, None]": SIGN,
        "return (-squares / (2 * width ** 2)).softmax(-1) -> "
        "return (-squares / (2 * width ** 2)).softmax(1)": "of two axes the last is number 1",
    },
    "gain_of_averaging": {"away = p - p.mean(0) -> away = p.mean(0) - p": SIGN},
    "with_weights": {},
}
