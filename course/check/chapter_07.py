"""Chapter 7: a training step, its loss and gradient, and statistics of a model's scores."""

import scipy  # its parts are loaded where they are used: a second, for one chapter
import torch
import torch.nn.functional as F
from torch import Tensor

from course.check.attempt import Attempt, Draw, normal_draws
from course.check.exercise import exercise

TWICE = (
    "There is a softmax before the cross-entropy, which has one already. Give it the logits as "
    "they are."
)


@exercise(seed=5)
def training_step(attempt: Attempt, normal: Draw) -> None:
    """Model, images, labels [batch], optimizer, smoothing -> the loss; the weights have moved."""
    batch, features, classes, rate = 5, 4, 3, 0.5
    labels = torch.tensor([2, 0, 1, 2, 2])
    start = normal(classes, features + 1)  # the last column is the bias
    small, other = 0.1 * normal(batch, features), 0.1 * normal(batch, features)
    large = 30 * normal(batch, features)

    def begin() -> tuple[torch.nn.Linear, torch.optim.SGD]:
        model = torch.nn.utils.skip_init(torch.nn.Linear, features, classes)
        model.weight.data, model.bias.data = start[:, :-1].clone(), start[:, -1].clone()
        return model, torch.optim.SGD(model.parameters(), lr=rate)

    def weights(model: torch.nn.Linear) -> Tensor:
        return torch.cat([model.weight, model.bias[:, None]], 1).detach().clone()

    model, optimizer = begin()
    loss, g = loss_and_gradient(start, small, labels)
    after = loss_and_gradient(start - rate * g, small, labels)[0]
    outcomes = {
        loss: "The number returned should be the mean cross-entropy of the batch.",
        batch * loss: "The cross-entropy is summed over the batch. Take the mean.",
        after: "This is the loss after the step. Return the one that the step was computed from.",
        -loss: "The sign is wrong: the loss is minus the logarithm of a probability.",
        F.cross_entropy(F.linear(small, start[:, :-1], start[:, -1]).softmax(1), labels): TWICE,
    }
    attempt.expect_close(attempt(model, small, labels, optimizer), outcomes)
    why = ", though the gradient is there: optimizer.step() is missing"
    if model.weight.grad is None or not model.weight.grad.any():
        why = (
            " and have no gradient: either loss.backward() is missing, or optimizer.zero_grad() "
            "comes between it and optimizer.step()"
        )
    outcomes = {
        start - rate * g: "The loss is right, the weights after one step of descent are not.",
        start: f"The weights have not moved{why}.",
        start + rate * g: "The weights have moved up the gradient.",
        start - rate * batch * g: "The weights have moved by the gradient of the summed loss.",
        start - rate * g / g.norm(): "This gradient is shorter than 1 and must stay as it is: only "
        "longer ones are scaled down.",
    }
    attempt.expect_close(weights(model), outcomes)
    middle = weights(model)
    attempt(model, other, labels, optimizer)
    second = loss_and_gradient(middle, other, labels)[1]
    outcomes = {
        middle - rate * second: "The first step is right, a second with other images is not.",
        middle - rate * (second + g): "The gradient of the step before is still there, since "
        "PyTorch adds to it. Call optimizer.zero_grad() in every step, before loss.backward().",
    }
    attempt.expect_close(weights(model), outcomes)
    model, optimizer = begin()
    attempt(model, large, labels, optimizer)
    g = loss_and_gradient(start, large, labels)[1]
    rows = g[:, :-1] / max(g[:, :-1].norm(), 1), g[:, -1:] / max(g[:, -1].norm(), 1)
    outcomes = {
        start - rate * g / g.norm(): f"A gradient of length {g.norm():.0f} is not scaled down to "
        "length 1.",
        start - rate * g: f"A gradient of length {g.norm():.0f} is not clipped. Clip after "
        "loss.backward() and before optimizer.step().",
        start - rate * g.clamp(-1, 1): "Each entry is clipped by itself, which turns the gradient. "
        "Scale all of it by one number: clip_grad_norm_.",
        start - rate * torch.cat(rows, 1): "Each parameter is clipped by itself. The length is "
        "that of all parameters together.",
    }
    attempt.expect_close(weights(model), outcomes)
    model, optimizer = begin()
    loss, g = loss_and_gradient(start, small, labels, smoothing=0.3)
    outcomes = {
        loss: "With smoothing 0.3 the loss is not the one of the smoothed labels.",
        loss_and_gradient(start, small, labels)[0]: "The labels are not smoothed.",
    }
    attempt.expect_close(attempt(model, small, labels, optimizer, 0.3), outcomes)
    message = "With smoothing the loss is right, the step is not."
    attempt.expect_close(weights(model), {start - rate * g: message})


def loss_and_gradient(
    weights: Tensor, images: Tensor, labels: Tensor, smoothing: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy of a linear map with a bias, and its gradient by a formula."""
    inputs = F.pad(images, (0, 1), value=1)
    logp = (inputs @ weights.T).log_softmax(1)
    q = (1 - smoothing) * torch.eye(len(weights))[labels] + smoothing / len(weights)
    return -(q * logp).sum(1).mean(), (logp.exp() - q).T @ inputs / len(images)


@exercise(seed=0)
def mixed_loss(attempt: Attempt, normal: Draw) -> None:
    """logits [batch, classes], labels, order, share, smoothing -> mean cross-entropy."""
    batch, classes = 5, 7
    logits = 2 * normal(batch, classes)
    labels, order = torch.tensor([2, 6, 0, 3, 2]), torch.tensor([3, 0, 4, 2, 1])

    def loss(share: float, smoothing: float, others=False, kept=False, order=order) -> Tensor:
        """From the targets; the last three arguments make mistakes."""
        one = torch.eye(classes)[labels]
        spread = (1 - one) / (classes - 1) if others else torch.full_like(one, 1 / classes)
        smoothed = (one if kept else (1 - smoothing) * one) + smoothing * spread
        target = share * smoothed + (1 - share) * smoothed[order]
        return -(target * logits.log_softmax(1)).sum(1).mean()

    outcomes = {
        loss(1.0, 0.0): "With share 1 and no smoothing this is the ordinary mean cross-entropy, "
        "and it is not.",
        batch * loss(1.0, 0.0): "The cross-entropy is summed over the batch. Take the mean.",
        loss(0.0, 0.0): "With share 1 an image's own label counts. The shares are exchanged.",
        loss(1.0, 0.0) / classes: "The cross-entropy is divided by the number of classes too. Sum "
        "over the classes, and take the mean over the batch.",
        -loss(1.0, 0.0): "The sign is wrong: the loss is minus the logarithm of a probability.",
        F.cross_entropy(logits.softmax(1), labels): TWICE,
    }
    attempt.expect_close(attempt(logits, labels, order, 1.0, 0.0), outcomes)
    outcomes = {
        loss(0.7, 0.0): "Without smoothing, share 0.7 of the target should be an image's own label "
        "and 0.3 that of image order[i].",
        loss(1.0, 0.0): "Only an image's own label counts. The second is missing, or the logits "
        "are reordered with it, which cancels: pair the logits as they are with labels[order].",
        F.cross_entropy(0.7 * logits + 0.3 * logits[order], labels): "Mix targets, not logits.",
        0.7 * loss(1.0, 0.0): "The targets sum to share: 1 - share of the other label is missing.",
        loss(0.3, 0.0): "The shares are exchanged: share belongs to the image's own label.",
        loss(0.7, 0.0, order=order.argsort()): "The partner of image i is order[i]; here it is the "
        "image that i is the partner of.",
    }
    attempt.expect_close(attempt(logits, labels, order, 0.7, 0.0), outcomes)
    outcomes = {
        loss(1.0, 0.2): "With share 1, the smoothed target should be 1 - smoothing on the right "
        "class, plus smoothing / classes on every class.",
        loss(1.0, 0.0): "The labels are not smoothed.",
        loss(1.0, 0.2, others=True): "The smoothing is spread over the other classes only. Spread "
        "it over all of them, the right one included.",
        loss(1.0, 0.2, kept=True): "The target sums to more than 1: the right class keeps its 1. "
        "Take smoothing from it first.",
    }
    attempt.expect_close(attempt(logits, labels, order, 1.0, 0.2), outcomes)
    message = "Mixing and smoothing are right by themselves, but not together."
    attempt.expect_close(attempt(logits, labels, order, 0.3, 0.4), {loss(0.3, 0.4): message})


@exercise("weights", seed=1)
def sharp_gradient(attempt: Attempt, normal: Draw) -> None:
    """weights [n], gradient: [n] -> [n], rho -> the gradient at the highest point nearby."""
    n, rho = 6, 0.5
    weights = normal(n)
    root = normal(n, n)
    curvature = root @ root.T / n  # [n, n]
    slope = normal(n)
    seen = []

    def slope_at(point: Tensor) -> Tensor:
        return curvature @ point + slope

    def gradient(point: Tensor) -> Tensor:
        seen.append(point)
        return slope_at(point)

    g = slope_at(weights)
    away = rho * g / g.norm()
    up = slope_at(weights + away)
    across = up - away * (away @ up) / rho**2  # without its part along g
    outcomes = {
        up: "For a quadratic loss the result is not the gradient at weights + rho * g / |g|.",
        g: "This is the gradient at the weights themselves. Take it at the point at distance rho "
        "up the gradient.",
        slope_at(weights - away): "This is the gradient on the way down. The highest point nearby "
        "lies up the gradient.",
        slope_at(weights + rho * g): "The step is not rho long: divide the gradient by its norm.",
        weights + away: "This is the point, not the gradient there.",
        up + g: "The two gradients are added. Return only the second.",
        up + rho / g.norm() * curvature @ across: "This differentiates through the step as well. "
        "Call gradient twice and do nothing else.",
    }
    attempt.expect_close(attempt(weights, gradient, rho), outcomes)
    said = f"gradient was called {len(seen)} times; each costs a backward pass, and two are enough."
    attempt.expect(len(seen) == 2, said)
    message = "With rho 0 the result should be the gradient at the weights."
    attempt.expect_close(attempt(weights, gradient, 0.0), {g: message})
    message = "Where the gradient is zero the result is 0 / 0. Return that gradient."
    flat = attempt(weights, lambda at: 0 * at, rho, shape=dict(weights=n), if_not_finite=message)
    attempt.expect_close(flat, {0.0: "Where the gradient is zero, return it as it is."})


@exercise()
def paired_interval(attempt: Attempt) -> None:
    """Accuracies a, b [seeds] -> lower end, mean and upper end of the mean difference [3]."""
    for seeds in (4, 7):  # the second catches a number typed in
        normal = normal_draws(seed=seeds)
        common = 0.1 * normal(seeds)  # what a seed does to both
        a, b = 0.61 + common + 0.02 * normal(seeds), 0.6 + common + 0.02 * normal(seeds)
        d = a - b
        student = scipy.stats.t.ppf
        t = student(0.975, seeds - 1)
        error, unpaired = d.std() / seeds**0.5, ((a.var() + b.var()) / seeds).sqrt()
        ends = torch.tensor([-1, 0, 1])  # an interval of half-width 1, less its mean
        found = attempt(a, b, shape=dict(numbers=3), listed=True)
        outcomes = {
            d.mean(): "The middle number should be the mean of a - b.",
            -d.mean(): "The sign is wrong: how much is a above b?",
        }
        attempt.expect_close(found[1], outcomes)
        message = "The first number is the lower end, the last the upper."
        attempt.expect(found[0] < found[2], message)
        outcomes = {
            ends * t * error: "The mean is right, the distance of the ends from it is not.",
            ends * t * unpaired: "This treats the two models as if they had different seeds. Take "
            "the standard deviation of the differences.",
            ends * t * d.std(): "These ends span the differences themselves. Those of their mean "
            "are closer by the root of the number of seeds.",
            ends * 1.959964 * error: "The factor is that of a normal distribution. With so few "
            "seeds it is Student's.",
            ends * t * d.std(correction=0) / seeds**0.5: "The variance is divided by n. The sample "
            "standard deviation divides by n - 1.",
            ends * t * d.std() / seeds: "The deviation is divided by n, not by the root of n.",
            ends * student(0.975, seeds) * error: "Student's distribution has n - 1 degrees of "
            "freedom here, not n.",
            ends * student(0.95, seeds - 1) * error: "This is the 90 % interval: 2.5 % are to lie "
            "beyond each end.",
        }
        # as of a table: 2.45 is Student's
        attempt.expect_close(found - found[1], outcomes, slack=200)


@exercise()
def best_temperature(attempt: Attempt) -> None:
    """Logits [n, classes], labels [n] -> the temperature with the smallest cross-entropy."""
    for seed, scale in ((2, 4.0), (3, 0.15), (4, 1.3)):  # far too sure, not sure enough, ...
        honest = 1.5 * normal_draws(seed=seed)(400, 5)
        draws = torch.Generator().manual_seed(seed)
        labels = honest.softmax(1).multinomial(1, generator=draws)[:, 0]
        logits = scale * honest
        best = by_scipy(logits, labels)
        found = attempt(logits, labels)
        attempt.expect(found > 0, f"A temperature is above 0: {found.item():.3g} is returned.")

        def nearly(wrong: float, found: Tensor = found) -> bool:
            return abs(found.item() / wrong - 1) < 2e-3

        message = "This is 1 / T: logits are divided by a temperature, not multiplied."
        attempt.expect(nearly(best) or not nearly(1 / best), message)
        said = "The result is 1, as if nothing needed correcting. Was the temperature searched for?"
        attempt.expect(nearly(best) or not nearly(1.0), said)
        attempt.expect(
            found > 0.06,
            "So low a temperature makes the model's own guesses as likely as can be. What counts "
            "is the probability of the true labels.",
        )
        message = (
            f"The mean cross-entropy is {loss_at(logits, labels, found.item()):.4f} at "
            f"T = {found.item():.4g} and {loss_at(logits, labels, best):.4f} at {best:.4g}."
        )
        if abs(found / best - 1) < 0.1:
            message = (
                f"T = {found.item():.4g} is close to the best, {best:.4g}, but three digits are "
                "asked, of where the cross-entropy is least. If you try values on a grid, make it "
                "finer near the best."
            )
        attempt.expect(nearly(best), message)


def loss_at(logits: Tensor, labels: Tensor, temperature: float) -> float:
    return F.cross_entropy(logits / temperature, labels).item()


def by_scipy(logits: Tensor, labels: Tensor) -> float:
    """The best temperature from 0.05 to 20."""
    how = {"bounds": (0.05, 20.0), "method": "bounded", "options": {"xatol": 1e-9}}
    found = scipy.optimize.minimize_scalar(lambda beta: loss_at(logits, labels, 1 / beta), **how)
    return 1 / found.x


@exercise("rows, columns", seed=9)
def orthogonalise(attempt: Attempt, normal: Draw) -> None:
    """update [rows, columns], steps -> as the update, its singular values near 1."""

    def curve(values: Tensor, steps: int, a: float = 3.4445, c: float = 2.0315) -> Tensor:
        for _ in range(steps):
            values = a * values - 4.775 * values**3 + c * values**5
        return values

    for shape in ((4, 7), (6, 3)):
        update = 5 * normal(*shape)
        u, values, vt = torch.linalg.svd(update, full_matrices=False)
        start = values / update.norm()
        where = f"For an update of {shape[0]} × {shape[1]}"
        outcomes = {
            u * curve(start, 5) @ vt: f"{where} the matrix after five steps is wrong.",
            u * curve(values / values[0], 5) @ vt: "You divide by the largest singular value. The "
            "Frobenius norm costs less: divide by that.",
            u * curve(start, 6) @ vt: "This is one step too many.",
            u * curve(start, 4) @ vt: "This is one step too few.",
            u * curve(start, 5, c=0) @ vt: "The term with c, of the fifth order, is missing.",
            u * curve(start, 5) * update.norm() @ vt: "The norm is multiplied in again at the end. "
            "The length of the update is what the method throws away.",
            update.sign(): "This is the sign of every number. It is the matrix's singular values "
            "that become 1.",
            u @ vt: "This is exact, and costs a singular value decomposition. Write the iteration.",
        }
        message = "The numbers explode. Is the update divided by its norm?"
        attempt.expect_close(attempt(update, 5, if_not_finite=message), outcomes)
    once = attempt(update, 1)
    attempt.expect_close(once, {u * curve(start, 1) @ vt: "After a single step it is wrong."})
