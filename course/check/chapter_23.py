"""Chapter 23: training cost, equal accuracy, power laws, a gated step, codes, contrast."""

import math

import torch

from course.check.attempt import Attempt, Draw
from course.check.exercise import exercise


@exercise()
def training_flops(attempt: Attempt) -> None:
    """multiply_adds, images, epochs -> one number."""
    known = torch.tensor(6.0 * 5 * 700 * 11)
    outcomes = {
        known: "For 5 multiply-adds an image, 700 images and 11 epochs the cost is wrong.",
        known / 2: "A multiply-add is two operations.",
        known / 3: "These are only the forward passes; the backward pass costs two more.",
        known * 2 / 3: "A training step is a forward pass and twice that backward: three in all.",
        known / 11: "Every image is seen once in each epoch: the epochs are missing.",
        known / 700: "The number of images is missing.",
        known * 2: "You count a multiply-add as two operations twice.",
    }
    attempt.expect_close(attempt(5, 700, 11), outcomes)


@exercise()
def cost_to_reach(attempt: Attempt) -> None:
    """accuracy, accuracies [n] and costs [n], both rising -> one number."""
    accuracies, costs = torch.tensor([70.0, 80.0, 85.0]), torch.tensor([10.0, 40.0, 640.0])

    def between(t: float, i: int) -> torch.Tensor:
        return torch.tensor(costs[i].item() ** (1 - t) * costs[i + 1].item() ** t)

    outcomes = {
        between(0.6, 1): "Between the second and third model, at three fifths, the cost is wrong.",
        costs[1] * 0.4 + costs[2] * 0.6: "You interpolate the cost. Interpolate its logarithm, and "
        "undo that.",
        between(0.6, 1).log(): "This is the logarithm of the cost.",
        between(0.6, 1).log10().exp(): "Two bases are mixed: undo log10 by 10 **.",
        between(math.log(83 / 80) / math.log(85 / 80), 1): "The accuracy needs no logarithm.",
        between(0.4, 1): "The ends are exchanged: near the cheaper model's accuracy the cost is "
        "near its.",
        costs[0] * (costs[-1] / costs[0]) ** (13 / 15): "You use the first and the last model. Use "
        "the two around the accuracy.",
        costs[2]: "This is the cost of the nearest model above. Interpolate.",
        costs[1]: "This is the cost of the nearest model below. Interpolate.",
    }
    attempt.expect_close(attempt(83.0, accuracies, costs), outcomes)
    message = "Between the first and the second model, at one fifth, the cost is wrong."
    attempt.expect_close(attempt(72.0, accuracies, costs), {between(0.2, 0): message})
    message = "At a model's own accuracy the cost should be its own."
    attempt.expect_close(attempt(80.0, accuracies, costs), {costs[1]: message})


@exercise("factor_and_exponent", seed=3)
def power_law(attempt: Attempt, normal: Draw) -> None:
    """sizes [n], errors [n] -> [2]: factor and exponent."""
    sizes = torch.tensor([10.0, 30.0, 100.0, 700.0])
    exact = torch.tensor([3.0, 0.4])
    errors = 3 * sizes**-0.4
    bases = (
        "Two bases are mixed: undo log10 by 10 ** and log by exp, and take sizes and errors to one "
        "base."
    )
    outcomes = {
        exact: "For errors exactly 3 times size to the power -0.4 factor or exponent is wrong.",
        exact * torch.tensor([1.0, -1.0]): "The exponent's sign is wrong: errors that fall have a "
        "positive one.",
        torch.tensor([math.log(3), 0.4]): "The factor is still a logarithm.",
        torch.tensor([math.log10(3), 0.4]): "The factor is still a logarithm, to base 10.",
        torch.tensor([math.exp(math.log10(3)), 0.4]): bases,
        torch.tensor([3.0, 0.4 * math.log(10)]): bases,
        torch.tensor([3.0, 0.4 / math.log(10)]): bases,
        exact.flip(0): "Factor and exponent are exchanged.",
    }
    attempt.expect_close(attempt(sizes, errors), outcomes)
    noisy = errors * (1 + 0.2 * normal(4)).abs()
    x, y = sizes.log(), noisy.log()
    slope = ((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum()
    fitted = torch.stack([(y.mean() - slope * x.mean()).exp(), -slope])
    through = (y[-1] - y[0]) / (x[-1] - x[0])
    outcomes = {
        fitted: "For errors off the law, the least-squares line of the logarithms is another.",
        torch.stack([(y[0] - through * x[0]).exp(), -through]): "You go through the first and the "
        "last point. Fit all, by least squares.",
    }
    attempt.expect_close(attempt(sizes, noisy), outcomes)


@exercise("batch, dim", seed=4)
def gru_step(attempt: Attempt, normal: Draw) -> None:
    """x [batch, d], h [batch, dim], maps [3 dim, d] and [3 dim, dim], biases [3 dim] -> as h."""
    x, h = normal(2, 3), normal(2, 4)
    w, u, b, c = normal(12, 3), normal(12, 4), normal(12), normal(12)

    def step(order=(0, 1, 2), keep=True, reset="outside", biases=True, last="tanh"):
        seen, told = (w @ x.T).T + b * biases, (u @ h.T).T + c * biases
        s, t = ([part[:, 4 * i : 4 * i + 4] for i in order] for part in (seen, told))
        r, z = (1 / (1 + torch.exp(-(s[i] + t[i]))) for i in (0, 1))
        gated = {
            "outside": r * t[2],
            "none": t[2],
            "product": r * (t[2] - c[8:]) + c[8:],
            "inside": r * h @ u[8:].T + c[8:],
            "all": r * (t[2] + s[2]) - s[2],
        }[reset]
        n = s[2] + gated
        n = torch.tanh(n) if last == "tanh" else 1 / (1 + torch.exp(-n))
        return (1 - z) * n + z * h if keep else z * n + (1 - z) * h

    outcomes = {
        step(): "For two states of four numbers the new state is wrong.",
        step(keep=False): "Where z is 1 the old state should stay: z and 1 - z are exchanged.",
        step(order=(1, 0, 2)): "The first four rows of a map are r's, the next z's, the last n's.",
        step(reset="none"): "r is not used: it multiplies what n gets from the state.",
        step(reset="all"): "r multiplies all of n's argument. It belongs only to the state's part.",
        step(reset="product"): "r leaves out the bias c. It multiplies U h + c.",
        step(reset="inside"): "r multiplies the state before its map. Here it multiplies U h + c.",
        step(biases=False): "The biases are missing.",
        step(last="sigmoid"): "n has a tanh, not a sigmoid.",
    }
    attempt.expect_close(attempt(x, h, w, u, b, c), outcomes)


@exercise("patches, numbers", seed=5)
def quantise(attempt: Attempt, normal: Draw) -> None:
    """patches [n, d], codebook [codes, d] -> [n, d]."""
    patches, codebook = normal(6, 3), 2 * normal(5, 3)
    squares = torch.stack([(patches - code).square().sum(1) for code in codebook], 1)
    products = patches @ codebook.T
    outcomes = {
        codebook[squares.argmin(1)]: "For six patches and five codes a patch does not become its "
        "nearest code.",
        codebook[squares.argmax(1)]: "Each patch becomes the farthest code.",
        codebook[products.argmax(1)]: "You take the largest product. A long code then wins from "
        "afar: take distances.",
        codebook[(products / codebook.norm(dim=1)).argmax(1)]: "Take distances, not angles.",
        patches[squares.argmin(0)]: "Each code becomes its nearest patch.",
        patches: "The patches come back unchanged.",
    }
    attempt.expect_close(attempt(patches, codebook), outcomes)
    message = "A patch that is a code should stay as it is."
    attempt.expect_close(attempt(codebook[[3, 1]], codebook), {codebook[[3, 1]]: message})


@exercise(seed=6)
def contrastive_loss(attempt: Attempt, normal: Draw) -> None:
    """images [n, d], texts [n, d], temperature -> one number."""
    images, texts = normal(4, 3), normal(4, 3)

    def loss(temperature=0.5, axis: int | None = 1, sides=(1, 0), mean=True, own=True):
        a, b = (v if axis is None else v / v.norm(dim=axis, keepdim=True) for v in (images, texts))
        scores = a @ b.T / temperature
        total = torch.tensor(0.0)
        for side in sides:
            others = scores.exp().sum(side) - (not own) * scores.diagonal().exp()
            away = others.log() - scores.diagonal()
            total = total + (away.mean() if mean else away.sum())
        return total / len(sides)

    outcomes = {
        loss(): "For four pairs and a temperature of 0.5 the loss is wrong.",
        loss(axis=None): "The vectors are not divided by their lengths.",
        loss(axis=0): "A vector is a row: divide along dim=1.",
        loss(temperature=2.0): "Scores are divided by the temperature, not multiplied.",
        loss(temperature=1.0): "The temperature is not used.",
        loss(sides=(1,)): "Each image chooses among texts; a text should choose among images too.",
        loss(sides=(0,)): "Each text chooses among images; an image should choose among texts too.",
        2 * loss(): "You add both directions. Take their mean.",
        loss(mean=False): "You add up the pairs. Take their mean.",
        loss(own=False): "The right one belongs among those to choose from.",
    }
    attempt.expect_close(attempt(images, texts, 0.5), outcomes)
