"""Chapter 23: answers that learners might give."""

from functools import partial

import torch
import torch.nn.functional as F


def by_passes(multiply_adds, images, epochs):
    forward = 2 * multiply_adds
    backward = 2 * forward
    return (forward + backward) * images * epochs


def by_search(accuracy, accuracies, costs):
    i = int(torch.searchsorted(accuracies, accuracy)) or 1
    share = (accuracy - accuracies[i - 1]) / (accuracies[i] - accuracies[i - 1])
    return costs[i - 1] * (costs[i] / costs[i - 1]) ** share


def faulty_cost(accuracy, accuracies, costs, how=torch.log, back=torch.exp, side=None, ends=False):
    i = int(torch.searchsorted(accuracies, accuracy)) or 1
    if side is not None:
        return costs[i + side]
    low, high = (0, -1) if ends else (i - 1, i)
    share = (accuracy - accuracies[low]) / (accuracies[high] - accuracies[low])
    a, b = how(costs[low]), how(costs[high])
    return back(a + share * (b - a))


def by_polyfit(sizes, errors):
    design = torch.stack([torch.ones_like(sizes), -sizes.log2()], 1)
    found = torch.linalg.lstsq(design, errors.log2()[:, None]).solution[:, 0]
    return torch.stack([2 ** found[0], found[1]])


def by_ends(sizes, errors):
    b = -(errors[-1] / errors[0]).log() / (sizes[-1] / sizes[0]).log()
    return torch.stack([errors[0] * sizes[0] ** b, b])


def by_cell(x, h, w_input, w_state, b_input, b_state):
    cell = torch.nn.GRUCell(x.shape[1], h.shape[1], dtype=x.dtype)
    cell.load_state_dict(
        dict(weight_ih=w_input, weight_hh=w_state, bias_ih=b_input, bias_hh=b_state)
    )
    return cell(x, h).detach()


def faulty_gru(x, h, w, u, b, c, keep=lambda z, n, h: n + z * (h - n), gate="outside",
               order=(0, 1, 2), last=torch.tanh):  # fmt: skip
    seen = [(x @ w.T + b).chunk(3, 1)[i] for i in order]
    told = [(h @ u.T + c).chunk(3, 1)[i] for i in order]
    r, z = (torch.sigmoid(seen[i] + told[i]) for i in (0, 1))
    inner = u.chunk(3)[order[2]]
    argument = {
        "outside": seen[2] + r * told[2],
        "none": seen[2] + told[2],
        "all": r * (seen[2] + told[2]),
        "inside": seen[2] + (r * h) @ inner.T + c.chunk(3)[order[2]],
    }[gate]
    return keep(z, last(argument), h)


def by_loop(patches, codebook):
    return torch.stack([min(codebook, key=lambda code: (code - p).norm()) for p in patches])


def by_entropy(images, texts, temperature):
    scores = F.cosine_similarity(images[:, None], texts, dim=-1) / temperature
    right = torch.arange(len(images))
    return (F.cross_entropy(scores, right) + F.cross_entropy(scores.mT, right)) / 2


def faulty_contrast(images, texts, temperature, unit=True, sides=(0, 1), end=torch.mean):
    a, b = (F.normalize(v, dim=1) if unit else v for v in (images, texts))
    scores = a @ b.mT / temperature
    chosen = [-end(scores.log_softmax(side).diagonal()) for side in sides]
    return sum(chosen) / len(chosen)


def without_own(images, texts, temperature):
    scores = F.cosine_similarity(images[:, None], texts, dim=-1) / temperature
    others = scores.masked_fill(torch.eye(len(scores), dtype=torch.bool), -torch.inf)
    sides = [others.logsumexp(side) - scores.diagonal() for side in (0, 1)]
    return torch.stack(sides).mean()


CORRECT = {
    "training_flops": by_passes,
    "cost_to_reach": by_search,
    "power_law": by_polyfit,
    "gru_step": by_cell,
    "quantise": by_loop,
    "contrastive_loss": by_entropy,
}

WRONG = {
    "training_flops": [
        ("is two operations", lambda m, images, epochs: 3 * m * images * epochs),
        ("only the forward passes", lambda m, images, epochs: 2 * m * images * epochs),
        ("three in all", lambda m, images, epochs: 4 * m * images * epochs),
        ("epochs are missing", lambda m, images, epochs: 6 * m * images),
        ("number of images", lambda m, images, epochs: 6 * m * epochs),
        ("operations twice", lambda m, images, epochs: 12 * m * images * epochs),
    ],
    "cost_to_reach": [
        ("Interpolate its logarithm", partial(faulty_cost, how=lambda c: c, back=lambda c: c)),
        ("This is the logarithm", partial(faulty_cost, back=lambda c: c)),
        ("ends are exchanged", lambda a, x, y: by_search(
            x[1] + x[2] - a if a > 80 else a, x, y)),
        ("first and the last", partial(faulty_cost, ends=True)),
        ("nearest model above", partial(faulty_cost, side=0)),
        ("nearest model below", partial(faulty_cost, side=-1)),
        ("at one fifth", lambda a, x, y: by_search(a, x[1:], y[1:])),
    ],
    "power_law": [
        ("sign is wrong", lambda x, y: by_polyfit(x, y) * torch.tensor([1, -1])),
        ("still a logarithm", lambda x, y: torch.stack(
            [by_polyfit(x, y)[0].log(), by_polyfit(x, y)[1]])),
        ("exchanged", lambda x, y: by_polyfit(x, y).flip(0)),
        ("first and the last point", by_ends),
    ],
    "gru_step": [
        ("z and 1 - z", partial(faulty_gru, keep=lambda z, n, h: h + z * (n - h))),
        ("belong to r", partial(faulty_gru, order=(1, 0, 2))),
        ("r is not used", partial(faulty_gru, gate="none")),
        ("whole of n's argument", partial(faulty_gru, gate="all")),
        ("before its map", partial(faulty_gru, gate="inside")),
        ("biases are missing", lambda x, h, w, u, b, c: by_cell(x, h, w, u, 0 * b, 0 * c)),
        ("not a sigmoid", partial(faulty_gru, last=torch.sigmoid)),
    ],
    "quantise": [
        ("farthest", lambda p, c: c[torch.cdist(p, c).argmax(1)]),
        ("largest product", lambda p, c: c[(p @ c.T).argmax(1)]),
        ("unchanged", lambda p, c: p.clone()),
        ("nearest code", lambda p, c: c[(p @ F.normalize(c, dim=1).T).argmax(1)]),
    ],
    "contrastive_loss": [
        ("divided by their lengths", partial(faulty_contrast, unit=False)),
        ("not multiplied", lambda a, b, t: by_entropy(a, b, 1 / t)),
        ("temperature is not used", lambda a, b, t: by_entropy(a, b, 1.0)),
        ("each text should choose", partial(faulty_contrast, sides=(1,))),
        ("each image should choose", partial(faulty_contrast, sides=(0,))),
        ("add both directions", lambda a, b, t: 2 * by_entropy(a, b, t)),
        ("add up the pairs", partial(faulty_contrast, end=torch.sum)),
        ("among those to choose from", without_own),
    ],
}  # fmt: skip

LAST = "of two axes the last is number 1"
NORMAL = "rows are what normalize takes by default"

EQUIVALENT = {
    "training_flops": {},
    "cost_to_reach": {},
    "power_law": {
        "away = x - x.mean() -> away = x.mean() - x": "the sign goes out with the quotient",
        "slope = away @ y / (away @ x) -> slope = away @ y / (x @ away)": "a product of vectors",
        "slope = away @ y / (away @ x) -> slope = y @ away / (away @ x)": "a product of vectors",
    },
    "gru_step": {
        "seen = (x @ w_input.mT + b_input).chunk(3, -1) -> "
        "seen = (x @ w_input.mT + b_input).chunk(3, 1)": LAST,
        "told = (h @ w_state.mT + b_state).chunk(3, -1) -> "
        "told = (h @ w_state.mT + b_state).chunk(3, 1)": LAST,
    },
    "quantise": {},
    "contrastive_loss": {
        "a, b = (F.normalize(images, dim=1), F.normalize(texts, dim=1)) -> "
        "a, b = (F.normalize(images, dim=1), F.normalize(texts))": NORMAL,
        "a, b = (F.normalize(images, dim=1), F.normalize(texts, dim=1)) -> "
        "a, b = (F.normalize(images), F.normalize(texts, dim=1))": NORMAL,
    },
}
