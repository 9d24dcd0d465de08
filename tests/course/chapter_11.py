import torch
import torch.nn.functional as F


def scores_on_the_way(slope, start, constant, step_size, steps):
    x, found = start.clone().requires_grad_(), []
    for _ in range(steps):
        score = (slope * x).sum()
        found.append(score.detach())
        (gradient,) = torch.autograd.grad((constant - score).abs(), x)
        x = (x - step_size * gradient).detach().requires_grad_()
    return torch.stack(found)


def expected_change(update, jitter):
    """The update spread over positions by a transposed convolution."""
    kernel = torch.ones(len(update), 1, jitter + 1, jitter + 1)
    return F.conv_transpose2d(update[None], kernel, groups=len(update))[0] / (jitter + 1) ** 2


def step_in_pixels(gradient, weight, rows, columns):
    factors = torch.kron(rows, columns)  # [h w, h w]
    matrix = factors.T @ torch.diag((weight**2).flatten()) @ factors
    return (gradient.flatten(2) @ matrix).view(gradient.shape)


def robust_images(start, wanted, model, shifts, steps, step_size):
    x = start
    for _ in range(steps):
        x = x.detach().requires_grad_()
        logits = [model(torch.roll(x, shift, (2, 3))) for shift in shifts]
        score = sum(one.gather(1, wanted[:, None]).sum() for one in logits)
        (g,) = torch.autograd.grad(score, x)
        g = g / g.flatten(1).square().mean(1).sqrt()[:, None, None, None]
        x = (x.detach() + step_size * g).clamp(0, 1)
    return x


def with_backward(start, wanted, model, shifts, steps, step_size):
    result = robust_images(start, wanted, model, shifts, steps, step_size)
    model(start).sum().backward()
    return result


WRONG = [
    ("robust_images", "still the start", lambda *a: a[0].clone()),
    ("robust_images", "parameters have gradients", with_backward),
]  # fmt: skip

EQUIVALENT = [
    ("scores_on_the_way", "a dot product has no order", "slope @ x -> x @ slope"),
    ("scores_on_the_way", "1 and -1 are their own inverses", "step_size * -> step_size /"),
    ("robust_images", "a factor of the gradient is divided out", ".sum() -> .mean()"),
    ("robust_images", "a constant has no gradient", "score = 0 -> score = 1 | score = -1"),
    ("robust_images", "the same numbers, with a history that is not used", ".detach(). -> ."),
    ("robust_images", "the same numbers, with their history", "return images.detach() -> return images"),
]  # fmt: skip
