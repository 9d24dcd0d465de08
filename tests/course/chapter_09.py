"""Chapter 9: answers that learners might give."""

import torch


def entropy(weights):
    return -(weights * weights.clamp(min=1e-30).log()).sum(-1)


def logarithms(weights):
    return (-(weights * weights.log()).sum(-1)).exp().mean(-1)


def base_two(weights):
    return (-(weights * weights.clamp(min=1e-30).log2()).sum(-1)).exp().mean(-1)


def offset_by_loop(weights, rows, columns):
    weights = weights.unflatten(1, (rows, columns)).unflatten(3, (rows, columns))
    down = torch.arange(rows) - torch.arange(rows)[:, None]  # [query row, key row]
    right = torch.arange(columns) - torch.arange(columns)[:, None]
    by_row, by_column = weights.sum((2, 4)), weights.sum((1, 3))  # [heads, query, key]
    found = [(by_row * down).sum((1, 2)), (by_column * right).sum((1, 2))]
    return torch.stack(found, 1) / (rows * columns)


def places(rows, columns):
    return torch.cartesian_prod(torch.arange(1.0 * rows), torch.arange(1.0 * columns))


def faulty_offset(weights, rows, columns, sign=1, flip=False, total=False, swap=False):
    where = places(rows, columns)
    if swap:
        where = places(columns, rows)
    found = sign * (weights @ where - where)
    found = found.flip(-1) if flip else found
    return found.sum(1) if total else found.mean(1)


def sizes(weights, rows, columns):
    where = places(rows, columns)
    return torch.einsum("hij,ija->ha", weights, (where - where[:, None]).abs()) / len(where)


def strongest(weights, rows, columns):
    where = places(rows, columns)
    return (where[weights.argmax(-1)] - where).mean(1)


def relevance_by_loop(weights, gradients):
    blocks, heads, tokens, _ = weights.shape
    R = torch.eye(tokens)
    for block in range(blocks):
        kept = [torch.relu(weights[block, h] * gradients[block, h]) for h in range(heads)]
        R = (torch.eye(tokens) + sum(kept) / heads) @ R
    return R


def faulty_relevance(weights, gradients, kept, step):
    R = torch.eye(weights.shape[-1])
    for A in kept(weights * gradients):
        R = step(A, R)
    return R


def cut(products):
    return products.clamp(min=0).mean(1)


def usual(A, R):
    return R + A @ R


def added_up(weights, gradients):
    return torch.eye(weights.shape[-1]) + cut(weights * gradients).sum(0)


def with_gradients_alone(weights, gradients):
    return faulty_relevance(torch.ones_like(weights), gradients, cut, usual)


def gradients_at(images, baseline, score, at):
    points = torch.cat([baseline + t * (images - baseline) for t in at]).requires_grad_()
    (found,) = torch.autograd.grad(score(points).sum(), points)
    return found.unflatten(0, (len(at), len(images))).mean(0)


def middles(steps):
    return [(k + 0.5) / steps for k in range(steps)]


def integrated_in_one_batch(images, baseline, score, steps):
    return (images - baseline) * gradients_at(images, baseline, score, middles(steps))


def integrated_at(at):
    def answer(images, baseline, score, steps):
        return (images - baseline) * gradients_at(images, baseline, score, at(steps))

    return answer


def without_the_way(images, baseline, score, steps):
    return gradients_at(images, baseline, score, middles(steps))


def times_picture(images, baseline, score, steps):
    return images * gradients_at(images, baseline, score, middles(steps))


def from_zero(images, baseline, score, steps):
    start = torch.zeros_like(baseline)
    return (images - baseline) * gradients_at(images, start, score, middles(steps))


CORRECT = {
    "effective_keys": lambda weights: torch.stack(
        [torch.stack([entropy(row).exp() for row in head]).mean() for head in weights]
    ),
    "mean_offset": offset_by_loop,
    "relevance": relevance_by_loop,
    "integrated_gradients": integrated_in_one_batch,
}

WRONG = {
    "effective_keys": [
        ("This is the entropy", lambda w: entropy(w).mean(-1)),
        ("to base 2", base_two),
        ("mean over keys", lambda w: (entropy(w) / w.shape[-1]).exp().mean(-1)),
        ("wrong sign", lambda w: (-entropy(w)).exp().mean(-1)),
        ("0 log 0", logarithms),
        ("exponential of the mean", lambda w: entropy(w).mean(-1).exp()),
        ("sums of squares", lambda w: (1 / w.square().sum(-1)).mean(-1)),
        ("one effective key", lambda w: torch.full((len(w),), float(w.shape[-1]))),
    ],
    "mean_offset": [
        ("signs are reversed", lambda *a: faulty_offset(*a, sign=-1)),
        ("signs are reversed", sizes),
        ("axes are exchanged", lambda *a: faulty_offset(*a, flip=True)),
        ("sum over queries", lambda *a: faulty_offset(*a, total=True)),
        ("axes are exchanged", lambda *a: faulty_offset(*a, swap=True)),
        ("no offset", lambda w, r, c: (w @ places(r, c)).mean(1)),
        ("Sum over keys by the weights", strongest),
    ],
    "relevance": [
        ("not cut off", lambda *a: faulty_relevance(*a, lambda p: p.mean(1), usual)),
        ("averaged before", lambda *a: faulty_relevance(*a, lambda p: p.mean(1).relu(), usual)),
        ("sizes are taken", lambda *a: faulty_relevance(*a, lambda p: p.abs().mean(1), usual)),
        ("heads are added up", lambda *a: faulty_relevance(*a, lambda p: p.relu().sum(1), usual)),
        ("only the gradient is used", with_gradients_alone),
        ("keeps only itself", lambda *a: faulty_relevance(*a, cut, lambda A, R: A @ R)),
        ("order is reversed", lambda *a: faulty_relevance(*a, cut, lambda A, R: R + R @ A)),
        ("blocks are added up", added_up),
    ],
    "integrated_gradients": [
        ("This is only the gradient", without_the_way),
        ("multiplied by the image", times_picture),
        ("sign is wrong", lambda *a: -integrated_in_one_batch(*a)),
        ("gradients are added up", lambda *a: a[3] * integrated_in_one_batch(*a)),
        ("only at the image", integrated_at(lambda steps: [1.0])),
        ("only at the baseline", integrated_at(lambda steps: [0.0])),
        ("starts at zero", from_zero),
        ("each piece ends", integrated_at(lambda steps: [(k + 1) / steps for k in range(steps)])),
        ("each piece begins", integrated_at(lambda steps: [k / steps for k in range(steps)])),
        ("score that bends", integrated_at(lambda steps: [0.5])),
    ],
}

PLACES = "places = torch.stack([place // columns, place % columns], dim={}).to(weights.dtype)"

EQUIVALENT = {
    "effective_keys": {
        "return entropy.exp().mean(-1) -> return entropy.exp().mean(1)": "of two axes, as below",
    },
    "mean_offset": {
        f"{PLACES.format(-1)} -> {PLACES.format(1)}": "of two axes the last is axis 1",
    },
    "relevance": {
        "R = torch.eye(weights.shape[-1]) -> R = torch.eye(weights.shape[-2])": (
            "there are as many queries as keys"
        ),
        "R = torch.eye(weights.shape[-1]) -> R = torch.eye(gradients.shape[-1])": (
            "gradients have the shape of weights"
        ),
    },
    "integrated_gradients": {
        "total = torch.zeros_like(images) -> total = torch.zeros_like(baseline)": (
            "the first gradient makes it a batch"
        ),
    },
}
