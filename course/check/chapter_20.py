"""Chapter 20: variance over positions, Gaussian weights, the gain of averaging, given weights."""

import torch

from course.check.attempt import Attempt, normal_draws
from course.check.exercise import exercise


@exercise
def position_variance(attempt: Attempt) -> None:
    """x [batch, tokens, dim] -> [batch]."""
    shape = dict(batch=2)
    x = normal_draws(seed=0)(2, 5, 3)
    x = x - x.mean(1, keepdim=True)
    known = torch.stack([one.square().sum() / 15 for one in x])
    outcomes = {
        "Where each feature has mean 0 over the tokens it is the mean square of all entries.": (
            known
        ),
        "The squares are added up. Take their mean, over tokens and features.": 15 * known,
        "You divide by the number of tokens minus 1. Divide by the number of tokens.": (
            known * 5 / 4
        ),
        "This is the standard deviation. The variance is its square.": known.sqrt(),
        "You add up the features. Take their mean.": 3 * known,
        "You take the variance of the features of each token. It is over the tokens, of each "
        "feature.": x.var(2, correction=0).mean(1),
        "All images are mixed: the result should have an entry for each.": known.mean().expand(2),
    }
    attempt.expect_close(attempt(x, shape=shape), outcomes)
    moved = x + torch.tensor([1.0, -2.0, 4.0])
    outcomes = {
        "A number added to a feature in all tokens should change nothing.": known,
        "You do not subtract the mean.": moved.square().mean((1, 2)),
        "You subtract one mean for all features. Each feature has its own.": torch.stack(
            [(one - one.mean()).square().mean() for one in moved]
        ),
        "You subtract the mean of each token. It should be that of each feature.": (
            (moved - moved.mean(2, keepdim=True)).square().mean((1, 2))
        ),
    }
    attempt.expect_close(attempt(moved, shape=shape), outcomes)


@exercise
def gaussian_weights(attempt: Attempt) -> None:
    """places [n, 2], width -> [n, n]."""
    places = torch.tensor([[0.0, 0.0], [0.0, 1.0], [2.0, 1.0], [3.0, 4.0]])
    n = len(places)
    shape = dict(queries=n, keys=n)

    def weights(width: float, power: float = 2, half: float = 2) -> torch.Tensor:
        table = torch.zeros(n, n)
        for i in range(n):
            for j in range(n):
                distance = sum((places[i][k] - places[j][k]) ** 2 for k in (0, 1)) ** 0.5
                table[i, j] = torch.exp(-(distance**power) / (half * width**power))
        return table

    def rows(table: torch.Tensor) -> torch.Tensor:
        return table / table.sum(1, keepdim=True)

    table = weights(1.5)
    outcomes = {
        "For four places and a width of 1.5 the weights are wrong.": rows(table),
        "The rows do not sum to 1: divide each by its sum.": table,
        "The columns sum to 1. It should be the rows: a row is a query.": table / table.sum(0),
        "The whole table sums to 1. Each row should.": table / table.sum(),
        "The weights grow with the distance. A minus sign is missing.": rows(1 / table),
        "The distance is not squared.": rows(weights(1.5, power=1)),
        "The 2 under the squared distance is missing.": rows(weights(1.5, half=1)),
        "The width is not squared.": rows(weights(1.5**0.5)),
    }
    attempt.expect_close(attempt(places, 1.5, shape=shape), outcomes)
    attempt.expect_close(
        attempt(places, 40.0, shape=shape),
        {"With a large width the weights should be nearly equal.": rows(weights(40.0))},
    )
    attempt.expect_close(
        attempt(places, 0.05, shape=shape),
        {"With a small width every place should keep to itself.": torch.eye(n)},
    )


@exercise
def gain_of_averaging(attempt: Attempt) -> None:
    """p [members, images, classes] -> one number."""
    normal = normal_draws(seed=1)
    p = normal(4, 6, 3)
    targets = torch.eye(3)[[0, 2, 1, 1, 0, 2]]
    members = torch.stack([(one - targets).square().sum(1).mean() for one in p]).mean()
    together = (p.sum(0) / 4 - targets).square().sum(1).mean()
    gain = members - together
    centred = p - p.sum(0) / 4
    outcomes = {
        "For four members, six images and three classes the gain is wrong.": gain,
        "You take the mean over the classes. A squared error is their sum.": gain / 3,
        "You add up the images. Take the mean error of an image.": gain * 6,
        "You add up the members. Take their mean.": gain * 4,
        "You divide by the number of members minus 1. Divide by their number.": gain * 4 / 3,
        "This is a distance, not its square.": centred.square().sum(-1).sqrt().mean(),
        "The mean over the images is taken away. It should be that over the members.": (
            (p - p.mean(1, keepdim=True)).square().sum(-1).mean()
        ),
        "The mean over the classes is taken away. It should be that over the members.": (
            (p - p.mean(2, keepdim=True)).square().sum(-1).mean()
        ),
        "This is the mean square of the predictions: take their mean over members away.": (
            p.square().sum(-1).mean()
        ),
    }
    attempt.expect_close(attempt(p), outcomes)
    same = normal(1, 6, 3).expand(4, -1, -1).contiguous()
    attempt.expect_close(
        attempt(same), {"Members that all agree gain nothing from averaging.": 0.0}
    )


@exercise
def with_weights(attempt: Attempt) -> None:
    """x [batch, tokens, dim], weights [heads, tokens, tokens], values, out [dim, dim] -> as x."""
    normal = normal_draws(seed=2)
    shape = dict(batch=2, tokens=3, dim=8)
    x, values, out = normal(2, 3, 8), normal(8, 8), normal(8, 8)
    weights = normal(4, 3, 3).softmax(-1)

    def by_head(
        weights: torch.Tensor, values: torch.Tensor, out: torch.Tensor, interleaved: bool = False
    ) -> torch.Tensor:
        v = x @ values
        heads = torch.arange(8) % 4 if interleaved else torch.arange(8) // 2
        z = torch.stack([(weights[heads[j]] @ v[..., j, None])[..., 0] for j in range(8)], -1)
        return z @ out

    outcomes = {
        "For four heads of width 2 the result is wrong.": by_head(weights, values, out),
        "The output map is not applied.": by_head(weights, values, torch.eye(8)),
        "The map to values is not applied.": by_head(weights, torch.eye(8), out),
        "The weights are transposed: a row holds what one query takes from each key.": (
            by_head(weights.mT, values, out)
        ),
        "All features get the mean of the heads' weights. Each head has its own.": (
            by_head(weights.mean(0).expand(4, -1, -1), values, out)
        ),
        "Neighbouring features belong to different heads. A head's features are consecutive.": (
            by_head(weights, values, out, interleaved=True)
        ),
        "Here the maps multiply the tokens from the right: x @ values.": (
            by_head(weights, values.T, out.T)
        ),
        "The input is added. This is only the branch.": x + by_head(weights, values, out),
    }
    attempt.expect_close(attempt(x, weights, values, out, shape=shape), outcomes)
