from functools import partial

import torch

from vitlab import linear_cka


def feature_cka(x, y):
    """With covariances of all features of both sides."""
    p, c = x.shape[1], torch.cov(torch.cat([x, y], 1).T.double())
    cross = (c[:p, p:] ** 2).sum()
    return (cross / torch.sqrt((c[:p, :p] ** 2).sum() * (c[p:, p:] ** 2).sum())).item()


def place_error(table):
    rows, columns, *_ = table.shape
    at = torch.cartesian_prod(torch.arange(1.0 * rows), torch.arange(1.0 * columns))
    return (at[table.flatten(2).flatten(0, 1).argmax(1)] - at).norm(dim=1).mean()


def streamed_cka(x, y, batch):
    """Goes through the batches twice: for the means, then for the products around them."""

    def batches():
        pairs = zip(x.split(batch), y.split(batch), strict=True)
        return (torch.cat(pair, 1).double() for pair in pairs)

    mean, p = sum(both.sum(0) for both in batches()) / len(x), x.shape[1]
    total = sum((both - mean).T @ (both - mean) for both in batches())
    xx, xy, yy = total[:p, :p], total[:p, p:], total[p:, p:]
    return (xy**2).sum() / (xx.norm() * yy.norm())


def left_out(x, y, penalty):
    """A fit for each row."""
    rows = []
    for i in range(len(x)):
        rest = torch.arange(len(x)) != i
        middle, level = x[rest].mean(0), y[rest].mean(0)
        u = x[rest] - middle
        system = u.T @ u + penalty * torch.eye(x.shape[1])
        rows.append((x[i] - middle) @ torch.linalg.solve(system, u.T @ (y[rest] - level)) + level)
    return torch.stack(rows)


WRONG = [
    ("feature_cka", "matrix of all pairs of images", partial(linear_cka, debiased=False)),
    ("streamed_cka", "Keep sums", lambda x, y, batch: feature_cka(x, y)),
    ("streamed_cka", "which is not full", lambda x, y, batch: float("nan")),
]  # fmt: skip

EQUIVALENT = [
    ("feature_cka", "the sign of a side is squared", "y - y.mean(0) -> y.mean(0) - y", "x - x.mean(0) -> x.mean(0) - x"),
    ("place_error", "the sign of a step is squared", "nearest % columns - torch.arange(columns) -> torch.arange(columns) - nearest % columns"),
    ("place_error", "the sign of a step is squared", "nearest // columns - torch.arange(rows)[:, None] -> torch.arange(rows)[:, None] - nearest // columns"),
    ("place_error", "the root of whole numbers is float too", ".float().sqrt() -> .sqrt()"),
    ("streamed_cka", "the sign of a side is squared", "products - torch.outer(total, total) / len(x) -> torch.outer(total, total) / len(x) - products"),
    ("streamed_cka", "both sides have equally many rows", "len(x) -> len(y)"),
    ("streamed_cka", "a check's features are double already", ").double() -> )"),
    ("streamed_cka", "the total stands in a product with itself", "total + both -> total - both"),
    ("left_out", "both sides have equally many rows", "len(x) -> len(y)"),
    ("left_out", "a level has no part in the fit of centred features", "(y - level) -> (y + level)"),
    ("left_out", "the features stand twice in the hat matrix", "x - x.mean(0) -> x.mean(0) - x"),
]  # fmt: skip
