from functools import partial

import torch
import torch.nn.functional as F
from scipy import optimize, stats


def mixed_loss(logits, labels, order, share, smoothing):
    loss = partial(F.cross_entropy, logits, label_smoothing=smoothing)
    own, other = loss(labels), loss(labels[order])
    return share * own + (1 - share) * other


def paired_interval(a, b):
    d = (a - b).numpy()
    low, high = stats.t.interval(0.95, len(d) - 1, loc=d.mean(), scale=stats.sem(d))
    return torch.tensor([low, d.mean(), high], dtype=a.dtype)


def best_temperature(logits, labels, steps=500):
    def entropy(u):
        return F.cross_entropy(logits.double() / 2.0**u, labels).item()

    options = {"bounds": (-4.3, 4.3), "method": "bounded", "options": {"maxiter": steps}}
    return 2.0 ** optimize.minimize_scalar(entropy, **options).x


def sharp_gradient(weights, gradient, rho):
    return gradient(torch.add(weights, F.normalize(gradient(weights), dim=0, eps=1e-12), alpha=rho))


def training_step(model, images, labels, optimizer, smoothing=0.0):
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


def faulty_step(model, images, labels, optimizer, smoothing=0.0, leave="", after=False):
    """The training step with one part left out, or with the loss after it."""
    logits = model(images).softmax(1) if leave == "logits" else model(images)
    cost = F.cross_entropy(logits, labels, label_smoothing=smoothing)
    if leave != "zero_grad":
        optimizer.zero_grad()
    if leave != "backward":
        cost.backward()
    if leave == "gradient":
        optimizer.zero_grad()
    if leave != "clip":
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if leave != "step":
        optimizer.step()
    return F.cross_entropy(model(images), labels).item() if after else cost.item()


def from_table(a, b, quantiles):
    """With a quantile of a table, by the number of seeds."""
    d = (a - b).tolist()
    half = quantiles[len(d)] * (a - b).std().item() / len(d) ** 0.5
    return [sum(d) / len(d) - half, sum(d) / len(d), sum(d) / len(d) + half]


ALSO_RIGHT = [
    ("paired_interval", lambda a, b: paired_interval(a, b).numpy()),
    ("paired_interval", lambda a, b: tuple(paired_interval(a, b))),
    ("paired_interval", partial(from_table, quantiles={4: 3.18, 7: 2.45})),
]  # fmt: skip


def orthogonalise(update, steps):
    u, values, vt = torch.linalg.svd(update / update.norm(), full_matrices=False)
    for _ in range(steps):
        values = values * (3.4445 + values**2 * (-4.775 + 2.0315 * values**2))
    return u @ torch.diag(values) @ vt


WRONG = [
    ("orthogonalise", "explode", lambda m, steps: m * float("inf")),
    # Handed in to the grader too, which has to bring the module's weights back.
    ("training_step", "the loss after the step", partial(faulty_step, after=True)),
    ("training_step", "there: optimizer.step() is missing", partial(faulty_step, leave="step")),
    ("training_step", "loss.backward() is missing, or", partial(faulty_step, leave="backward")),
    ("training_step", "loss.backward() is missing, or", partial(faulty_step, leave="gradient")),
    ("training_step", "a softmax before the cross-entropy", partial(faulty_step, leave="logits")),
    ("training_step", "is still there", partial(faulty_step, leave="zero_grad")),
    ("training_step", "is not clipped", partial(faulty_step, leave="clip")),
    ("paired_interval", "the lower end", lambda a, b: paired_interval(a, b).flip(0)),
    ("paired_interval", "of type str", lambda a, b: "0.01"),
    ("best_temperature", "This is 1 / T", lambda z, y: 1 / best_temperature(z, y)),
    ("best_temperature", "as if nothing needed correcting", lambda z, y: 1.0),
    ("best_temperature", "own guesses", lambda z, y: best_temperature(z, z.argmax(1))),
    ("best_temperature", "The mean cross-entropy is", partial(best_temperature, steps=2)),
    ("best_temperature", "three digits are asked", lambda z, y: min((torch.arange(1, 4000) * 0.005).tolist(), key=lambda t: F.cross_entropy(z / t, y).item())),
    ("best_temperature", "A temperature is above 0", lambda z, y: -best_temperature(z, y)),
    ("sharp_gradient", "was called", lambda w, f, rho: (f(w), sharp_gradient(w, f, rho))[1]),
    ("sharp_gradient", "0 / 0", lambda w, f, rho: f(w + rho * (g := f(w)) / g.norm())),
]  # fmt: skip

EQUIVALENT = [
    ("training_step", "a tensor without axes is a number, too", "loss.item() -> loss"),
    ("training_step", "the optimizer has all parameters of the model", "optimizer.zero_grad -> model.zero_grad"),
    ("training_step", "torch takes less than 0 for 0", "smoothing=0.0 -> smoothing=-1.0"),
    ("best_temperature", "so many halvings are more than a double can show", "range(60) -> range(59) | range(61)"),
    ("best_temperature", "they are never exactly equal", "> true -> >= true"),
    ("best_temperature", "the answer lies well inside", "20.0 -> 19.0 | 21.0"),
    ("best_temperature", "a check's logits are double already", "logits.double() -> logits"),
    ("orthogonalise", "a number goes where one likes", "2.0315 * a @ a -> a @ (2.0315 * a)"),
    ("sharp_gradient", "a norm is never below 0", "== 0 -> <= 0"),
]  # fmt: skip
