import torch
import torch.nn.functional as F


def flow_example(noise, images, t):
    points = [a.lerp(b, s) for a, b, s in zip(noise, images, t, strict=True)]
    return torch.stack([torch.stack(points), images - noise])


def time_features(t, dim):
    rates = [10 ** (3 * k / (dim // 2 - 1)) for k in range(dim // 2)]
    wave = torch.stack([t * rate for rate in rates], -1)
    return torch.hstack([wave.cos(), wave.sin()])


def modulated(x, shift, scale, gate, branch):
    rows = [
        F.layer_norm(one, one.shape[-1:], 1 + s, b, eps=1e-6)
        for one, s, b in zip(x, scale, shift, strict=True)
    ]
    return torch.einsum("btd,bd->btd", branch(torch.stack(rows)), gate) + x


def euler(velocity, x, steps):
    if steps == 0:
        return x
    dt = 1 / steps
    for t in torch.arange(steps) * dt:
        x = x + dt * velocity(x, t)
    return x


def heun(velocity, x, steps):
    for i in range(steps):
        first = velocity(x, i / steps)
        second = velocity(x + first / steps, (i + 1) / steps)
        x = x + (first + second) / (2 * steps)
    return x


def guided(conditional, unconditional, scale):
    return scale * conditional + (1 - scale) * unconditional


def nearest(drawings, images):
    return (drawings[:, None] - images).flatten(2).norm(dim=2).min(1).values


def exact_velocity(points, t, images):
    logits = (t * points @ images.mT - t**2 * images.square().sum(1) / 2) / (1 - t) ** 2
    return (F.softmax(logits, 1) @ images - points) / (1 - t)


EQUIVALENT = [
    ("exact_velocity", "the time that is left enters squared", "(1 - t) ** 2 -> (t - 1) ** 2"),
    ("modulated", "all have the width of a token", "x.shape[-1:] -> gate.shape[-1:]", "x.shape[-1:] -> scale.shape[-1:]", "x.shape[-1:] -> shift.shape[-1:]"),
]  # fmt: skip
