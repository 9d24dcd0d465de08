from functools import partial

import torch


def steps_for(values, share):
    slowest = 1 - (values.double().min() / values.double().max()).item() ** 2
    steps, left = 1, slowest
    while left > share:
        steps, left = steps + 1, left * slowest
    return steps


def faulty_steps(values, share, pick=torch.min, power=2, end=torch.ceil, least=1):
    ratio = (pick(values) / values.max()) ** power
    factor = (1 - ratio).double()
    if factor <= 0:
        return least
    return max(end(torch.tensor(share).double().log() / factor.log()).item(), least)


def block_without(x, missing, norm1, attention, norm2, mlp):
    n1 = norm1(x) if missing != "norm" else x
    skip = 0 if missing == "residual" else 1
    y = x if missing == "attention" else attention(n1) + skip * x
    if missing == "mlp":
        return y
    n2 = norm2(y) if missing != "norm" else y
    return mlp(n2) + skip * y


def unused_numbers(x, module):
    parameters = dict(module.named_parameters())
    slopes = torch.func.jacrev(lambda p: torch.func.functional_call(module, p, (x,)))(parameters)
    return sum((s.flatten(0, 1) == 0).all(0).sum().item() for s in slopes.values())


def faulty_count(
    x, module, weigh=torch.rand_like, count=lambda s: (s == 0).sum(), none=True, turn=False
):
    parameters = list(module.parameters())
    y = module(x)
    slopes = torch.autograd.grad(y, parameters, weigh(y), allow_unused=True)
    total = 0.0
    for p, s in zip(parameters, slopes, strict=True):
        total += float(count(p * 0) * none if s is None else count(s))
    return sum(p.numel() for p in parameters) - total if turn else total


def leaving_gradients(x, module):
    module(x).sum().backward()
    return unused_numbers(x, module)


def last_only(y):
    weights = torch.zeros_like(y)
    weights[-1] = torch.rand_like(y[-1])
    return weights


def largest_value(start, push, pull, steps):
    """The root of how long the last product makes a unit vector."""
    v = start / start.norm()
    for _ in range(steps):
        w = pull(push(v))
        v = w / w.norm()
    return w.norm().sqrt()


def faulty_value(start, push, pull, steps, unit=True, end=None, extra=0):
    v = start / start.norm()
    for _ in range(steps + extra):
        v = pull(push(v))
        v = v / v.norm() if unit else v
    return push(v).norm() if end is None else end(push(v).norm(), v)


def recovered_fast(target, push, pull, steps):
    """Least squares among all that so many products reach, by an orthonormal basis of it."""
    basis, images, v = [], [], pull(target)
    for _ in range(steps):
        for q in 2 * basis:
            v = v - (q @ v) * q
        basis.append(v / v.norm())
        images.append(push(basis[-1]))
        v = pull(images[-1])
    found = torch.linalg.lstsq(torch.stack(images, 1), target[:, None]).solution[:, 0]
    return found @ torch.stack(basis)


def descent(target, push, pull, steps):
    x = 0 * pull(target)
    for _ in range(steps):
        x = x + pull(target - push(x))
    return x


WRONG = [
    ("steps_for", "direction of the largest", partial(faulty_steps, pick=torch.max)),
    ("steps_for", "Round up", partial(faulty_steps, end=torch.floor)),
    ("steps_for", "has to be squared", partial(faulty_steps, power=1)),
    ("steps_for", "not by the squared ratio", lambda v, share: 3 if v[0] == 2 and v[1] == 1 else 2),
    ("steps_for", "They may come in any order", partial(faulty_steps, pick=lambda v: v[-1])),
    ("steps_for", "all of the error is left", partial(faulty_steps, least=0)),
    ("unused_numbers", "the numbers that are used", partial(faulty_count, turn=True)),
    ("unused_numbers", "You count tensors", partial(faulty_count, count=lambda s: float((s == 0).all()))),
    ("unused_numbers", "no gradient at all", partial(faulty_count, none=False)),
    ("unused_numbers", "plain sum of the outputs", partial(faulty_count, weigh=torch.ones_like)),
    ("unused_numbers", "outputs with themselves", partial(faulty_count, weigh=lambda y: y.detach())),
    ("unused_numbers", "only if all of its gradient", partial(faulty_count, count=lambda s: s.numel() * (s == 0).all())),
    ("unused_numbers", "one entry of the batch", partial(faulty_count, weigh=last_only)),
    ("unused_numbers", "are left in the module", leaving_gradients),
    ("largest_value", "the square of", partial(faulty_value, end=lambda length, v: length.square())),
    ("largest_value", "length of a unit vector", partial(faulty_value, end=lambda length, v: v.norm())),
    ("largest_value", "This is the root", partial(faulty_value, end=lambda length, v: length.sqrt())),
    ("largest_value", "contains NaN or infinity", partial(faulty_value, unit=False, end=lambda length, v: length / v.norm())),
    ("largest_value", "times. At most", partial(faulty_value, extra=5)),
    ("largest_value", "Are all steps taken", partial(faulty_value, extra=-1)),
    ("recovered_fast", "condition number of 2 the", lambda t, push, pull, steps: pull(t)),
    ("recovered_fast", "remembers nothing", descent),
    ("recovered_fast", "times. At most", lambda t, push, pull, steps: recovered_fast(t, push, pull, 2 * steps)),
    ("recovered_fast", "fixed length", lambda t, *rest: recovered_fast(t, *rest) * (t.norm() < 100)),
]  # fmt: skip

EQUIVALENT = [
    ("block_without", "'residual' is the last by alphabet", "missing == 'residual' -> missing >= 'residual'"),
]  # fmt: skip
