"""Chapter 10: answers that learners might give."""

from functools import partial

import torch


def by_covariances(x, y):
    """With covariances of all features of both sides."""
    p, c = x.shape[1], torch.cov(torch.cat([x, y], 1).T.double())
    cross = (c[:p, p:] ** 2).sum()
    return (cross / torch.sqrt((c[:p, :p] ** 2).sum() * (c[p:, p:] ** 2).sum())).item()


def faulty_cka(x, y, centre=lambda t: t.mean(0), power=2, below=lambda t: (t.T @ t).norm(), root=1):
    x, y = x - centre(x), y - centre(y)
    return ((x.T @ y).norm() ** power / (below(x) * below(y))) ** root


def by_grams(x, y):
    k, h = ((t - t.mean(0)) @ (t - t.mean(0)).T for t in (x, y))
    return (k * h).sum() / (k.norm() * h.norm())


def by_loops(table):
    rows, columns, *_ = table.shape
    total = 0.0
    for r in range(rows):
        for c in range(columns):
            at = [(i, j) for i in range(rows) for j in range(columns)]
            i, j = max(at, key=lambda place: table[r, c, place[0], place[1]].item())
            total += ((i - r) ** 2 + (j - c) ** 2) ** 0.5
    return total / (rows * columns)


def faulty_place(
    table, pick=lambda flat: flat.argmax(1), measure=torch.hypot, mean=torch.mean, by=1
):
    rows, columns = table.shape[:2]
    found = pick(table.reshape(rows * columns, -1))
    here, wide = torch.arange(rows * columns), (rows, columns)[by]
    down = found // wide - here // columns
    right = found % wide - here % columns
    return mean(measure(down.float(), right.float()))


def by_welford(x, y, batch):
    """Merges means and products around them, one batch after the other."""
    p, count = x.shape[1], 0
    for start in range(0, len(x), batch):
        both = torch.cat([x[start : start + batch], y[start : start + batch]], 1).double()
        m, mean = len(both), both.mean(0)
        product = (both - mean).T @ (both - mean)
        if not count:
            count, middle, total = m, mean, product
            continue
        step = mean - middle
        total = total + product + torch.outer(step, step) * count * m / (count + m)
        middle = middle + step * m / (count + m)
        count += m
    xx, xy, yy = total[:p, :p], total[:p, p:], total[p:, p:]
    return (xy**2).sum() / (xx.norm() * yy.norm())


def parts(x, y, batch):
    return list(zip(x.split(batch), y.split(batch), strict=True))


def whole(x, y, batch, root=1):
    return faulty_cka(x, y, root=root)


def each_alone(x, y, batch, mean=lambda values, sizes: values.mean()):
    found = [(by_grams(a, b), float(len(a))) for a, b in parts(x, y, batch)]
    return mean(*(torch.tensor(side) for side in zip(*found, strict=True)))


def own_means(x, y, batch):
    centred = [(a - a.mean(0), b - b.mean(0)) for a, b in parts(x, y, batch)]
    return by_grams(*(torch.cat(side) for side in zip(*centred, strict=True)))


def means_of_means(x, y, batch):
    return faulty_cka(
        x, y, centre=lambda t: torch.stack([c.mean(0) for c in t.split(batch)]).mean(0)
    )


def full_batches(x, y, batch):
    some = max(len(x) // batch * batch, min(len(x), batch))
    return by_grams(x[:some], y[:some])


def refitted(x, y, penalty, share=lambda penalty, n: penalty):
    """A fit for each row, with the bias as a feature that has no penalty."""
    one = torch.ones(len(x), 1, dtype=torch.float64)
    design, y64 = torch.cat([x.double(), one], 1), y.double()
    free = torch.ones(design.shape[1], dtype=torch.float64)
    free[-1] = 0
    rows = []
    for i in range(len(x)):
        rest = torch.arange(len(x)) != i
        a = design[rest]
        system = a.T @ a + share(penalty, len(x)) * torch.diag(free)
        rows.append(design[i] @ torch.linalg.solve(system, a.T @ y64[rest]))
    return torch.stack(rows).to(x.dtype)


def faulty_left_out(
    x, y, penalty, share=1.0, end=lambda y, e, h: y - e / (1 - h), shrink=True, back=True
):
    u, level = x - x.mean(0), y.mean(0)
    eye = torch.eye(x.shape[1])
    hat = u @ torch.linalg.solve(u.T @ u + penalty * eye, u.T)
    plain = u @ torch.linalg.solve(u.T @ u, u.T)
    h = (hat if shrink else plain).diagonal()[:, None] + share / len(x)
    result = end(y, y - level - hat @ (y - level), h)
    return result if back else result - level


CORRECT = {
    "feature_cka": by_covariances,
    "place_error": by_loops,
    "streamed_cka": by_welford,
    "left_out": refitted,
}

WRONG = {
    "feature_cka": [
        ("is not squared", partial(faulty_cka, power=1)),
        ("the root of CKA", partial(faulty_cka, root=0.5)),
        ("depends on the scale", partial(faulty_cka, below=lambda t: (t.T @ t).norm() ** 2)),
        ("the norms of x and y", partial(faulty_cka, below=lambda t: t.norm() ** 2)),
        ("CKA centres both sides", partial(faulty_cka, centre=lambda t: 0)),
        ("mean of each image", partial(faulty_cka, centre=lambda t: t.mean(1, keepdim=True))),
        ("mean of all numbers", partial(faulty_cka, centre=lambda t: t.mean())),
        ("matrix of all pairs of images", by_grams),
    ],
    "place_error": [
        (
            "steps along rows and columns",
            partial(faulty_place, measure=lambda a, b: a.abs() + b.abs()),
        ),
        ("squares of distances", partial(faulty_place, measure=lambda a, b: a**2 + b**2)),
        ("root of the mean square", partial(faulty_place, mean=lambda d: d.square().mean().sqrt())),
        ("divide by the number of columns", partial(faulty_place, by=0)),
        ("how far they miss", partial(faulty_place, mean=lambda d: (d > 0).float().mean())),
        (
            "the patches' numbers",
            lambda table: (
                (table.flatten(2).flatten(0, 1).argmax(1) - torch.arange(15)).abs().float().mean()
            ),
        ),
        ("first two axes are the token's", partial(faulty_place, pick=lambda f: f.argmax(0))),
        ("least like the token", partial(faulty_place, pick=lambda f: f.argmin(1))),
        ("whatever the sign", partial(faulty_place, pick=lambda f: f.abs().argmax(1))),
    ],
    "streamed_cka": [
        ("This is the root", partial(whole, root=0.5)),
        ("subtract the means", lambda x, y, batch: faulty_cka(x, y, centre=lambda t: 0)),
        ("the batches' own values.", each_alone),
        (
            "own values, by size",
            partial(each_alone, mean=lambda values, sizes: (values * sizes).sum() / sizes.sum()),
        ),
        ("centred by its own mean", own_means),
        ("only the last batch", lambda x, y, batch: by_grams(*parts(x, y, batch)[-1])),
        ("smaller than the others", full_batches),
        ("A larger batch counts for more", means_of_means),
        ("Keep sums", whole),
    ],
    "left_out": [
        ("seen its own target", partial(faulty_left_out, end=lambda y, e, h: y - e)),
        (
            "Subtract them from the targets",
            partial(faulty_left_out, end=lambda y, e, h: e / (1 - h)),
        ),
        ("1 / n, is missing", partial(faulty_left_out, share=0.0)),
        ("multiplied by 1 - h", partial(faulty_left_out, end=lambda y, e, h: y - e * (1 - h))),
        ("the mean leverage", partial(faulty_left_out, end=lambda y, e, h: y - e / (1 - h.mean()))),
        ("penalty is not used", lambda x, y, penalty: refitted(x, y, 0.0)),
        ("penalty is squared", partial(refitted, share=lambda penalty, n: penalty**2)),
        ("by the number of rows", partial(refitted, share=lambda penalty, n: penalty * n)),
        ("that without one", partial(faulty_left_out, shrink=False)),
        ("not added back", partial(faulty_left_out, back=False)),
    ],
}

CENTRED = "x, y = (x - x.mean(0), y - y.mean(0)) -> x, y = ({}, {})"
SIGN = "the sign of a whole side goes out with the squares"
STEP = "the sign of a step goes out with its square"
ROOT = "return (down.square() + right.square()){}.sqrt().mean()"
BOTH = "both = torch.cat([a, b], dim=1)"
MEANS = "u, level = ({}, y.mean(0))"
ERROR = "error = y - level - hat @ (y {} level)"
LEVERAGE = "leverage = hat.diagonal()[:, None] + 1 / len({})"

EQUIVALENT = {
    "feature_cka": {
        CENTRED.format("x - x.mean(0)", "y.mean(0) - y"): SIGN,
        CENTRED.format("x.mean(0) - x", "y - y.mean(0)"): SIGN,
    },
    "place_error": {
        "right = nearest % columns - torch.arange(columns) -> "
        "right = torch.arange(columns) - nearest % columns": STEP,
        "down = nearest // columns - torch.arange(rows)[:, None] -> "
        "down = torch.arange(rows)[:, None] - nearest // columns": STEP,
        f"{ROOT.format('.float()')} -> {ROOT.format('')}": "the root of whole numbers is float too",
    },
    "streamed_cka": {
        "centred = products - torch.outer(total, total) / len(x) -> "
        "centred = torch.outer(total, total) / len(x) - products": SIGN,
        "centred = products - torch.outer(total, total) / len(x) -> "
        "centred = products - torch.outer(total, total) / len(y)": "both sides have equally many rows",
        f"{BOTH}.double() -> {BOTH}": "a check's features are double already",
        "total = total + both.sum(0) -> total = total - both.sum(0)": (
            "the total stands in a product with itself"
        ),
    },
    "left_out": {
        f"{LEVERAGE.format('x')} -> {LEVERAGE.format('y')}": "both sides have equally many rows",
        f"{ERROR.format('-')} -> {ERROR.format('+')}": (
            "the columns of the centred features sum to zero, so a level has no part in the fit"
        ),
        f"{MEANS.format('x - x.mean(0)')} -> {MEANS.format('x.mean(0) - x')}": (
            "the features stand twice in the hat matrix"
        ),
    },
}
