"""Chapter 11: answers that learners might give."""

import torch
import torch.nn.functional as F


def scores(slope, start, constant, step_size, steps, sign=None, before=True, rise=None, stop=False):
    """Score by score, without an image."""
    sign = sign or (lambda score: 1 if constant > score else -1)
    rise = step_size * slope @ slope if rise is None else rise
    score, found = slope @ start, []
    for _ in range(steps):
        found += [score] if before else []
        score = score + rise * sign(score)
        score = score.clamp(max=constant) if stop else score
        found += [] if before else [score]
    return torch.stack(found)


def by_autograd(slope, start, constant, step_size, steps):
    x, found = start.clone().requires_grad_(), []
    for _ in range(steps):
        score = (slope * x).sum()
        found.append(score.detach())
        (gradient,) = torch.autograd.grad((constant - score).abs(), x)
        x = (x - step_size * gradient).detach().requires_grad_()
    return torch.stack(found)


def spread(update, jitter, places=None, divide=None):
    """The update spread over positions by a transposed convolution."""
    places = jitter + 1 if places is None else places
    kernel = torch.ones(len(update), 1, places, places)
    total = F.conv_transpose2d(update[None], kernel, groups=len(update))[0]
    missing = jitter + 1 - places
    total = F.pad(total, (0, missing, 0, missing))
    return total / (places**2 if divide is None else divide)


def in_the_middle(update, jitter):
    before = jitter // 2
    return F.pad(update, (before, jitter - before, before, jitter - before))


def by_cover(update, jitter):
    return spread(update, jitter, divide=1) / spread(torch.ones_like(update), jitter, divide=1)


def filtered(gradient, weight, rows, columns, power=2):
    factors = torch.kron(rows, columns)  # [h w, h w]
    matrix = factors.T @ torch.diag((weight**power).flatten()) @ factors
    return (gradient.flatten(2) @ matrix).view(gradient.shape)


def climb(
    start,
    wanted,
    model,
    shifts,
    steps,
    step_size,
    scale="picture",
    clip="always",
    sign=1,
    probability=False,
    combine="mean",
    exchanged=False,
):
    """With any of its parts replaced."""
    x = start
    for _ in range(steps):
        x = x.detach().requires_grad_()
        scores = []
        for down, across in shifts:
            down, across = (across, down) if exchanged else (down, across)
            logits = model(torch.roll(x, (down, across), (2, 3)))
            logits = logits.softmax(1) if probability else logits
            scores.append(logits.gather(1, wanted[:, None]).sum())
        score = scores[-1] if combine == "last" else torch.stack(scores).sum()
        (g,) = torch.autograd.grad(score, x)
        if scale == "picture":
            g = g / g.flatten(1).square().mean(1).sqrt()[:, None, None, None]
        if scale == "batch":
            g = g / g.square().mean().sqrt()
        if scale == "sign":
            g = g.sign()
        x = x.detach() + sign * step_size * g
        if clip == "always":
            x = x.clamp(0, 1)
    return x.clamp(0, 1) if clip == "last" else x


def with_backward(start, wanted, model, shifts, steps, step_size):
    result = climb(start, wanted, model, shifts, steps, step_size)
    model(start).sum().backward()
    return result


def other_way(start, wanted, model, shifts, steps, step_size):
    return climb(start, wanted, model, [(-a, -b) for a, b in shifts], steps, step_size)


CORRECT = {
    "scores_on_the_way": by_autograd,
    "expected_change": spread,
    "step_in_pixels": filtered,
    "robust_images": climb,
}

WRONG = {
    "scores_on_the_way": [
        ("The score falls", lambda *a: scores(*a, sign=lambda score: -1)),
        ("scores after each step", lambda *a: scores(*a, before=False)),
        ("times the length of the slope", lambda *a: scores(*a, rise=a[3] * a[0].norm())),
        ("distance |C - o| comes back", lambda *a: (a[2] - scores(*a)).abs()),
        (
            "grow with the distance",
            lambda *a: scores(*a, sign=lambda score: 2 * (a[2] - score)),
        ),
        ("keeps rising beyond", lambda *a: scores(*a, sign=lambda score: 1)),
        ("stops at C", lambda *a: scores(*a, sign=lambda score: 1, stop=True)),
        ("by the same amount", lambda *a: scores(*a, rise=a[3])),
    ],
    "expected_change": [
        ("is the sum over all", lambda u, j: spread(u, j, divide=1)),
        ("along one side", lambda u, j: spread(u, j, divide=j + 1)),
        ("divided by jitter squared", lambda u, j: spread(u, j, divide=max(j, 1) ** 2)),
        ("last row and column", lambda u, j: spread(u, j, places=max(j, 1))),
        ("stays in the middle", in_the_middle),
        ("stays in the corner", lambda u, j: F.pad(u, (0, j, 0, j))),
        ("how often it is covered", by_cover),
        ("Without jitter", lambda u, j: spread(u, j) / 2),
    ],
    "step_in_pixels": [
        ("These are coefficients", lambda g, s, r, c: s * (r @ g @ c.T)),
        ("counts once", lambda *a: filtered(*a, power=1)),
        ("play no part", lambda g, s, r, c: g.clone()),
        ("weights divide", lambda *a: filtered(*a, power=-2)),
        ("bases are exchanged", lambda g, s, r, c: filtered(g, s, r.T, c.T)),
        ("Pixels are weighted", lambda g, s, r, c: g * s**2),
        ("should be the step in the pixels", lambda g, s, r, c: r @ g @ c),
    ],
    "robust_images": [
        ("still the start", lambda *a: a[0].clone()),
        ("The score falls", lambda *a: climb(*a, sign=-1)),
        ("not divided by its root", lambda *a: climb(*a, scale="none")),
        ("share one root mean square", lambda *a: climb(*a, scale="batch")),
        ("moves as far as", lambda *a: climb(*a, scale="sign")),
        ("climbs for class i", lambda *a: climb(a[0], torch.arange(3), *a[2:])),
        ("that of the probability", lambda *a: climb(*a, probability=True)),
        ("parameters have gradients", with_backward),
        ("shifts play no part", lambda *a: climb(*a[:3], [(0, 0)], *a[4:])),
        ("Only the last shift", lambda *a: climb(*a, combine="last")),
        ("shift are exchanged", lambda *a: climb(*a, exchanged=True)),
        ("the other way", other_way),
        ("leave the range", lambda *a: climb(*a, clip="never")),
        ("only at the end", lambda *a: climb(*a, clip="last")),
    ],
}

STEP = "x = x + step_size {} torch.sign(constant - score) * slope"
LOGITS = "score = score + logits.gather(1, wanted[:, None]).{}()"
LEAF = "images = images.{}requires_grad_()"

EQUIVALENT = {
    "scores_on_the_way": {
        "score = slope @ x -> score = x @ slope": "a dot product has no order",
        f"{STEP.format('*')} -> {STEP.format('/')}": "1 and -1 are their own inverses",
    },
    "expected_change": {},
    "step_in_pixels": {},
    "robust_images": {
        f"{LOGITS.format('sum')} -> {LOGITS.format('mean')}": (
            "a factor of the gradient is divided out"
        ),
        "score = 0 -> score = 1": "a constant has no gradient",
        "score = 0 -> score = -1": "a constant has no gradient",
        f"{LEAF.format('detach().')} -> {LEAF.format('')}": (
            "the same numbers; their history is kept and not used"
        ),
        "return images.detach() -> return images": "the same numbers, with their history",
    },
}
