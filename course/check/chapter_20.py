"""Chapter 20: variance over positions, Gaussian weights, the gain of averaging, given weights."""

import torch

from course.check.attempt import Attempt, Draw
from course.check.chapter_14 import mixed
from course.check.exercise import exercise


@exercise("batch", seed=0)
def position_variance(attempt: Attempt, normal: Draw) -> None:
    """x [batch, tokens, dim] -> [batch]."""
    x = normal(2, 5, 3)
    x = x - x.mean(1, keepdim=True)
    known = torch.stack([one.square().sum() / 15 for one in x])
    outcomes = {
        known: "Where each feature has mean 0 over tokens it is the mean square of all entries.",
        15 * known: "The squares are added up. Take their mean, over tokens and features.",
        known * 5 / 4: "You divide by the number of tokens less 1. Divide by the number of tokens.",
        known.sqrt(): "This is the standard deviation. The variance is its square.",
        x.std(1, correction=0).mean(1): "Standard deviations are averaged. Take variances.",
        3 * known: "You add up the features. Take their mean.",
        x.var(2, correction=0).mean(1): "You take the variance of the features of each token. It "
        "is over the tokens, of each feature.",
        known.mean().expand(2): "All images are mixed: the result should have an entry for each.",
    }
    attempt.expect_close(attempt(x), outcomes)
    moved = x + torch.tensor([1.0, -2.0, 4.0])
    outcomes = {
        known: "A number added to a feature in all tokens should change nothing.",
        moved.square().mean((1, 2)): "You do not subtract the mean.",
        torch.stack([(one - one.mean()).square().mean() for one in moved]): "You subtract one mean "
        "for all features. Each feature has its own.",
        (moved - moved.mean(2, keepdim=True)).square().mean((1, 2)): "You subtract the mean of "
        "each token. It should be that of each feature.",
    }
    attempt.expect_close(attempt(moved), outcomes)


@exercise("queries, keys")
def gaussian_weights(attempt: Attempt) -> None:
    """places [n, 2], width -> [n, n]."""
    places = torch.tensor([[0.0, 0.0], [0.0, 1.0], [2.0, 1.0], [3.0, 4.0]])

    def weights(width: float, power: float = 2, half: float = 2) -> torch.Tensor:
        distances = torch.stack([(places - place).norm(dim=1) for place in places])
        return torch.exp(-(distances**power) / (half * width**power))

    def rows(table: torch.Tensor) -> torch.Tensor:
        return table / table.sum(1, keepdim=True)

    table = weights(1.5)
    outcomes = {
        rows(table): "For four places and a width of 1.5 the weights are wrong.",
        table: "The rows do not sum to 1: divide each by its sum.",
        table / table.sum(0): "The columns sum to 1. It should be the rows: a row is a query.",
        table / table.sum(): "The whole table sums to 1. Each row should.",
        rows(1 / table): "The weights grow with the distance. A minus sign is missing.",
        **dict.fromkeys((rows(weights(1.5, 1, h)) for h in (2, 3)), "The distance is not squared."),
        rows(weights(1.5, half=1)): "The 2 under the squared distance is missing.",
        rows(weights(1.5**0.5)): "The width is not squared.",
    }
    attempt.expect_close(attempt(places, 1.5), outcomes)
    message = "With a large width the weights should be nearly equal."
    attempt.expect_close(attempt(places, 40.0), {rows(weights(40.0)): message})
    message = "With a small width every place should keep to itself."
    attempt.expect_close(attempt(places, 0.05), {torch.eye(len(places)): message})


@exercise(seed=1)
def gain_of_averaging(attempt: Attempt, normal: Draw) -> None:
    """p [members, images, classes] -> one number."""
    p = normal(4, 6, 3)
    targets = torch.eye(3)[[0, 2, 1, 1, 0, 2]]
    members = torch.stack([(one - targets).square().sum(1).mean() for one in p]).mean()
    gain = members - (p.sum(0) / 4 - targets).square().sum(1).mean()
    outcomes = {
        gain: "For four members, six images and three classes the gain is wrong.",
        gain / 3: "You take the mean over the classes. A squared error is their sum.",
        gain * 6: "You add up the images. Take the mean error of an image.",
        gain * 4: "You add up the members. Take their mean.",
        gain * 4 / 3: "You divide by the number of members minus 1. Divide by their number.",
        (p - p.sum(0) / 4).square().sum(-1).sqrt().mean(): "This is a distance, not its square.",
        (p - p.mean(1, keepdim=True)).square().sum(-1).mean(): "The mean over the images is taken "
        "away. It should be that over the members.",
        (p - p.mean(2, keepdim=True)).square().sum(-1).mean(): "The mean over the classes is taken "
        "away. It should be that over the members.",
        p.square().sum(-1).mean(): "This is the mean square of the predictions: take their mean "
        "over members away.",
    }
    attempt.expect_close(attempt(p), outcomes)
    same = normal(1, 6, 3).expand(4, -1, -1).contiguous()
    message = "Members that all agree gain nothing from averaging."
    attempt.expect_close(attempt(same), {0.0: message})


@exercise("batch, tokens, dim", seed=2)
def with_weights(attempt: Attempt, normal: Draw) -> None:
    """x [batch, tokens, dim], weights [heads, tokens, tokens], values, out [dim, dim] -> as x."""
    x, values, out = normal(2, 3, 8), normal(8, 8), normal(8, 8)
    weights = normal(4, 3, 3).softmax(-1)
    outcomes = {
        mixed(x, weights, values, out): "For four heads of width 2 the result is wrong.",
        mixed(x, weights, values, torch.eye(8)): "The output map is not applied.",
        mixed(x, weights, torch.eye(8), out): "The map to values is not applied.",
        mixed(x, weights.mT, values, out): "The weights are transposed: a row holds what one query "
        "takes from each key.",
        mixed(x, weights.mean(0).expand(4, -1, -1), values, out): "All features get the mean of "
        "the heads' weights. Each head has its own.",
        mixed(x, weights, values, out, interleaved=True): "Neighbouring features belong to "
        "different heads. A head's features are consecutive.",
        mixed(x, weights, values.T, out.T): "Here the maps multiply the tokens from the right: x @ "
        "values.",
        x + mixed(x, weights, values, out): "The input is added. This is only the branch.",
    }
    attempt.expect_close(attempt(x, weights, values, out), outcomes)
