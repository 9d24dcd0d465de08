"""Chapter 7: answers that learners might give."""

from functools import partial

import torch
import torch.nn.functional as F
from scipy import optimize, stats


def two_losses(logits, labels, order, share, smoothing):
    own, other = (
        F.cross_entropy(logits, y, label_smoothing=smoothing) for y in (labels, labels[order])
    )
    return share * own + (1 - share) * other


def faulty_loss(
    logits, labels, order, share, smoothing, reduction="mean", others=False, kept=False, mix=True
):
    """The mixed loss with one step replaced."""
    k = logits.shape[1]
    y = F.one_hot(labels, k).float()
    y = share * y + (1 - share) * y[order] if mix else y
    spread = (1 - y) / (k - 1) if others else 1 / k
    y = (1 if kept else 1 - smoothing) * y + smoothing * spread
    losses = -(y * logits.log_softmax(1)).sum(1)
    return losses.sum() if reduction == "sum" else losses.mean()


def halves(a, b, half):
    d = (a - b).mean()
    return torch.stack([d - half, d, d + half])


def by_scipy(a, b):
    d = (a - b).numpy()
    low, high = stats.t.interval(0.95, len(d) - 1, loc=d.mean(), scale=stats.sem(d))
    return torch.tensor([low, d.mean(), high], dtype=a.dtype)


def t_of(a, level=0.975, less=1):
    return stats.t.ppf(level, len(a) - less)


def by_newton(logits, labels):
    """Newton's method on the logarithm of 1 / T, in steps of at most one."""
    z, u = logits.double(), torch.zeros((), dtype=torch.float64)
    true = z[torch.arange(len(z)), labels]
    for _ in range(100):
        p = (u.exp() * z).softmax(1)
        mean = (p * z).sum(1)
        slope = u.exp() * (mean - true).mean()
        bend = slope + u.exp() ** 2 * ((p * z.square()).sum(1) - mean.square()).mean()
        u = u - (slope / bend.abs().clamp(min=1e-6)).clamp(-1, 1)
    return (-u).exp()


def by_grid(logits, labels, cost):
    grid = torch.logspace(-1.3, 1.3, 400, dtype=torch.float64).tolist()
    return min(grid, key=lambda t: cost(logits.double(), labels, t))


def entropy(z, labels, t):
    return F.cross_entropy(z / t, labels).item()


def wrong_share(z, labels, t):
    """The distance of mean confidence and mean accuracy, with a sign that is forgotten."""
    return (z / t).softmax(1).amax(1).mean().item()


def fixed_iterations(logits, labels):
    found = optimize.minimize_scalar(
        lambda u: entropy(logits.double(), labels, 2.0**u),
        bounds=(-4.3, 4.3),
        method="bounded",
        options={"maxiter": 4},
    )
    return 2.0**found.x


def in_one_line(weights, gradient, rho):
    return gradient(torch.add(weights, F.normalize(gradient(weights), dim=0, eps=1e-12), alpha=rho))


def elsewhere(weights, gradient, rho, way):
    return gradient(weights + way(rho, gradient(weights)))


def differentiated(weights, gradient, rho):
    """The derivative through the perturbation too, by a finite difference of the gradient."""
    w = weights.clone().requires_grad_()
    g = gradient(w)
    if not g.requires_grad:
        return g
    second = gradient(w + rho * g / g.norm())
    (found,) = torch.autograd.grad(w + rho * g / g.norm(), w, second.detach())
    return found


def by_autograd(model, images, labels, optimizer, smoothing=0.0):
    """The step with each of its parts written out."""
    parameters = list(model.parameters())
    logp = model(images).log_softmax(1)
    loss = -(1 - smoothing) * logp.gather(1, labels[:, None]).mean() - smoothing * logp.mean()
    gradients = torch.autograd.grad(loss, parameters)
    length = torch.stack([g.norm() for g in gradients]).norm().item()
    for parameter, g in zip(parameters, gradients, strict=True):
        parameter.grad = g / max(length, 1.0)
    optimizer.step()
    return loss


def faulty_step(
    model,
    images,
    labels,
    optimizer,
    smoothing=0.0,
    leave=(),
    clip=None,
    sign=1,
    after=False,
    **loss,
):
    """The training step with one part left out or replaced."""
    eps = 0.0 if "smoothing" in leave else smoothing
    cost = F.cross_entropy(model(images), labels, label_smoothing=eps, **loss)
    if "zero_grad" not in leave:
        optimizer.zero_grad()
    (sign * cost).backward()
    if clip is None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    else:
        clip(list(model.parameters()))
    if "step" not in leave:
        optimizer.step()
    if after:
        return F.cross_entropy(model(images), labels).item()
    return cost.item()


def nothing(parameters):
    pass


def by_parameter(parameters):
    for parameter in parameters:
        torch.nn.utils.clip_grad_norm_([parameter], 1.0)


def to_one(parameters):
    length = torch.stack([p.grad.norm() for p in parameters]).norm()
    for parameter in parameters:
        parameter.grad /= length


def zero_after_backward(model, images, labels, optimizer, smoothing=0.0):
    loss = F.cross_entropy(model(images), labels, label_smoothing=smoothing)
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()
    return loss.item()


CORRECT = {
    "training_step": by_autograd,
    "mixed_loss": two_losses,
    "paired_interval": by_scipy,
    "best_temperature": by_newton,
    "sharp_gradient": in_one_line,
}

WRONG = {
    "training_step": [
        ("mean cross-entropy of the batch", lambda m, x, y, o, e=0.0: m(x).logsumexp(1).mean()),
        ("summed over the batch", partial(faulty_step, reduction="sum")),
        ("the loss after the step", partial(faulty_step, after=True)),
        ("The weights have not moved", partial(faulty_step, leave=("step",))),
        ("The weights have not moved", zero_after_backward),
        ("up the gradient", partial(faulty_step, sign=-1)),
        ("only longer ones", partial(faulty_step, clip=to_one)),
        ("is still there", partial(faulty_step, leave=("zero_grad",))),
        ("is not clipped", partial(faulty_step, clip=nothing)),
        (
            "Each entry",
            partial(faulty_step, clip=partial(torch.nn.utils.clip_grad_value_, clip_value=1.0)),
        ),
        ("Each parameter", partial(faulty_step, clip=by_parameter)),
        ("are not smoothed", partial(faulty_step, leave=("smoothing",))),
    ],
    "mixed_loss": [
        ("summed over the batch", partial(faulty_loss, reduction="sum")),
        ("The second label is missing", partial(faulty_loss, mix=False)),
        (
            "With share 1 each image is itself",
            lambda z, y, o, m, e: two_losses(z, y, o, 1 - m, e),
        ),
        ("it is not", lambda z, y, o, m, e: two_losses(z.softmax(1), y, o, m, e)),
        (
            "the image that i is the partner",
            lambda z, y, o, m, e: two_losses(z, y, o.argsort(), m, e),
        ),
        ("sum to share only", lambda z, y, o, m, e: m * F.cross_entropy(z, y, label_smoothing=e)),
        ("are not smoothed", lambda z, y, o, m, e: two_losses(z, y, o, m, 0.0)),
        ("over the other classes only", partial(faulty_loss, others=True)),
        ("keeps its 1", partial(faulty_loss, kept=True)),
        ("The sign is wrong", lambda *inputs: -two_losses(*inputs)),
        ("not together", lambda z, y, o, m, e: two_losses(z, y, o, m, e if m == 1 else 0.0)),
    ],
    "paired_interval": [
        ("how much is a above b", lambda a, b: by_scipy(b, a)),
        ("the lower end", lambda a, b: by_scipy(a, b).flip(0)),
        (
            "had different seeds",
            lambda a, b: halves(a, b, t_of(a) * (a.var() + b.var()).sqrt() / len(a) ** 0.5),
        ),
        ("span the differences", lambda a, b: halves(a, b, t_of(a) * (a - b).std())),
        (
            "normal distribution",
            lambda a, b: halves(a, b, stats.norm.ppf(0.975) * (a - b).std() / len(a) ** 0.5),
        ),
        (
            "sample standard deviation",
            lambda a, b: halves(a, b, t_of(a) * (a - b).std(correction=0) / len(a) ** 0.5),
        ),
        ("not by the root", lambda a, b: halves(a, b, t_of(a) * (a - b).std() / len(a))),
        (
            "degrees of freedom",
            lambda a, b: halves(a, b, t_of(a, less=0) * (a - b).std() / len(a) ** 0.5),
        ),
        ("90 %", lambda a, b: halves(a, b, t_of(a, 0.95) * (a - b).std() / len(a) ** 0.5)),
        ("the ends are not", lambda a, b: halves(a, b, 2.447 * (a - b).std() / len(a) ** 0.5)),
        ("middle number", lambda a, b: by_scipy(a, b).roll(1)),
    ],
    "best_temperature": [
        ("This is 1 / T", lambda z, y: 1 / by_newton(z, y)),
        ("as if nothing needed correcting", lambda z, y: 1.0),
        ("own guesses", lambda z, y: by_grid(z, z.argmax(1), entropy)),
        ("The mean cross-entropy is", fixed_iterations),
        ("The mean cross-entropy is", partial(by_grid, cost=wrong_share)),
        ("A temperature is above 0", lambda z, y: -by_newton(z, y)),
    ],
    "sharp_gradient": [
        ("at the weights themselves", lambda w, f, rho: f(w)),
        ("on the way down", lambda w, f, rho: in_one_line(w, f, -rho)),
        ("is not rho long", partial(elsewhere, way=lambda rho, g: rho * g)),
        ("squared norm", partial(elsewhere, way=lambda rho, g: rho * g / g.square().sum())),
        ("its own size", partial(elsewhere, way=lambda rho, g: rho * g.sign())),
        ("the point, not the gradient", lambda w, f, rho: w + rho * F.normalize(f(w), dim=0)),
        ("are added", lambda w, f, rho: f(w) + in_one_line(w, f, rho)),
        ("differentiates through", differentiated),
        ("was called", lambda w, f, rho: (f(w), in_one_line(w, f, rho))[1]),
        ("0 / 0", partial(elsewhere, way=lambda rho, g: rho * g / g.norm())),
    ],
}

STEP = "def training_step(model, images, labels, optimizer, smoothing={}):"
HALVINGS = "so many halvings are more than a double can show, one more or less"
BOUNDS = "low, high = (0.05, 20.0) -> low, high = (0.05, {})"
INSIDE = "the answer lies well inside"

EQUIVALENT = {
    "training_step": {
        "return loss.item() -> return loss": "a tensor without axes is a number, too",
        "optimizer.zero_grad() -> model.zero_grad()": "the optimizer has all parameters of the model",
        STEP.format("0.0") + " -> " + STEP.format("-1.0"): "torch takes less than 0 for 0",
    },
    "mixed_loss": {},
    "paired_interval": {},
    "best_temperature": {
        "for _ in range(60): -> for _ in range(59):": HALVINGS,
        "for _ in range(60): -> for _ in range(61):": HALVINGS,
        "if expected > true: -> if expected >= true:": "they are never exactly equal",
        BOUNDS.format(19.0): INSIDE,
        BOUNDS.format(21.0): INSIDE,
        "z = logits.double() -> z = logits": "a check's logits are double already",
    },
    "sharp_gradient": {
        "if length == 0: -> if length <= 0:": "a norm is never below 0",
    },
}
