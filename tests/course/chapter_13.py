"""Chapter 13: answers that learners might give."""

from functools import partial

import torch
import torch.nn.functional as F


def by_terms(y, gamma, beta, mean, std):
    return y * std / gamma + (mean - std * beta / gamma)


def faulty_statistics(y, gamma, beta, mean, std, undo=None, scale=lambda std: std, last=True):
    z = (y - beta) / gamma if undo is None else undo(y, gamma, beta)
    return z * scale(std) + mean * (1 if last else scale(std))


def by_square(y, gamma, eps):
    """Solves for the mean square of the input first."""
    r = (y / gamma).pow(2).mean(2, True)
    square = eps * r / (1 - r)
    return torch.sqrt(square + eps) * (y / gamma)


def faulty_rms(y, gamma, eps, read=None, size=None, end=lambda x, gamma: x, axes=-1):
    w = y / gamma
    r = (w if read is None else read(y, w)).square().mean(axes, keepdim=True)
    factor = (eps / (1 - r).abs()).sqrt()
    return end((w if size is None else size(w, factor)) * (factor if size is None else 1), gamma)


def by_variance(y, gamma, eps):
    w = y / gamma
    return w * (eps / (1 - w.var(-1, correction=0, keepdim=True))).sqrt()


def by_autograd(x, gamma, eps, g):
    x = x.clone().requires_grad_()
    F.layer_norm(x, gamma.shape, gamma, None, eps).backward(g)
    return x.grad


def faulty_pullback(
    x,
    gamma,
    eps,
    g,
    mean=True,
    along=1.0,
    power=-1.0,
    before=True,
    after=False,
    eps_z=1,
    eps_s=1,
    outside=False,
    by=lambda u, z: z,
):
    """The product with one step replaced by each option."""
    u = x - x.mean(-1, keepdim=True)
    v = u.square().mean(-1, keepdim=True)
    root = (lambda share: v.sqrt() + share * eps) if outside else (lambda s: (v + s * eps).sqrt())
    z = by(u, u / root(eps_z))
    h = gamma * g if before else g
    part = along * z * (z * h).mean(-1, keepdim=True)
    result = (h - h.mean(-1, keepdim=True) * mean - part) * root(eps_s) ** power
    return result * gamma if after else result


def by_eigenvectors(x, function, tolerance):
    """By the symmetric product of the Jacobian with itself, in float64."""
    jacobian = torch.func.jacfwd(function)(x).double()
    values, vectors = torch.linalg.eigh(jacobian.T @ jacobian)
    lost = vectors[:, values.clamp(min=0).sqrt() <= tolerance * values[-1].sqrt()]
    return (lost @ lost.T).to(x.dtype)


def faulty_forgotten(
    x, function, tolerance, side="v", kept=False, share=True, transpose=False, short=False
):
    u, values, vt = torch.linalg.svd(torch.func.jacrev(function)(x), full_matrices=not short)
    basis = vt if side == "v" else u.T  # rows
    basis = basis.T if transpose else basis
    rank = int((values > tolerance * (values[0] if share else 1)).sum())
    rows = basis[:rank] if kept else basis[rank:]
    return rows.T @ rows


def by_beside(y, gamma, weight, offset):
    """Looks from beside the image of the embedding, where the scale alone is unknown."""
    w = y / gamma
    beside = torch.linalg.svd(weight).U[:, weight.shape[1] :]  # [dim, dim - n]
    a = ((offset @ beside) * (w @ beside)).sum(-1) / (w @ beside).square().sum(-1)
    return (a[..., None] * w - offset) @ torch.linalg.pinv(weight).T


def faulty_patches(y, gamma, weight, offset, undo=torch.div, known=None, result=None):
    """By its own least squares, one step replaced by each option."""
    w = undo(y, gamma)
    known = offset if known is None else known(offset)
    q = by_beside(w, torch.ones_like(gamma), weight, known)
    return q if result is None else result(q, w, weight, known)


def without_scale(q, w, weight, offset):
    return (w - offset) @ torch.linalg.pinv(weight).T


def size(q, weight, offset):
    return (q @ weight.T + offset).square().mean(-1, keepdim=True).sqrt()


CORRECT = {
    "with_statistics": by_terms,
    "rms_input": by_square,
    "norm_pullback": by_autograd,
    "forgotten": by_eigenvectors,
    "patches_behind_rms": by_beside,
}

WRONG = {
    "with_statistics": [
        ("std is not used", partial(faulty_statistics, scale=lambda std: 1)),
        ("the variance", partial(faulty_statistics, scale=torch.square)),
        ("the root of std", partial(faulty_statistics, scale=torch.sqrt)),
        ("You divide by std", partial(faulty_statistics, scale=torch.reciprocal)),
        ("mean is not used", lambda y, g, b, mean, std: by_terms(y, g, b, 0 * mean, std)),
        ("mean is multiplied by std", partial(faulty_statistics, last=False)),
        ("gamma and beta are not undone", partial(faulty_statistics, undo=lambda y, g, b: y)),
        (" beta is not undone.", partial(faulty_statistics, undo=lambda y, g, b: y / g)),
        (" gamma is not undone.", partial(faulty_statistics, undo=lambda y, g, b: y - b)),
        ("before you subtract", partial(faulty_statistics, undo=lambda y, g, b: y / g - b)),
        (
            "apply gamma and beta once more",
            partial(faulty_statistics, undo=lambda y, g, b: y * g + b),
        ),
    ],
    "rms_input": [
        ("comes back unchanged", lambda y, g, eps: y / g),
        (
            "by the root mean square of the input",
            lambda y, g, e: faulty_rms(y, g, e, size=lambda w, f: w * (f.square() - e).sqrt()),
        ),
        ("by the mean square plus eps", partial(faulty_rms, size=lambda w, f: w * f.square())),
        (
            "normed once more",
            lambda y, g, e: y / g / ((y / g).square().mean(-1, keepdim=True) + e).sqrt(),
        ),
        ("took the variance", by_variance),
        ("sum of squares", partial(faulty_rms, read=lambda y, w: w * w.shape[-1] ** 0.5)),
        ("have one scale", partial(faulty_rms, axes=(0, 1, 2))),
        ("undone only at the end", partial(faulty_rms, read=lambda y, w: y)),
        ("undone only for the scale", partial(faulty_rms, end=lambda x, g: x * g)),
        ("You multiply by gamma", partial(faulty_rms, end=lambda x, g: x * g * g)),
        ("though with 0.5 it was right", lambda y, g, e: by_square(y, g, 0.5)),
    ],
    "norm_pullback": [
        ("product with C is missing", partial(faulty_pullback, mean=False)),
        ("along z is not subtracted", partial(faulty_pullback, along=0)),
        ("not divided by s", partial(faulty_pullback, power=0)),
        ("by the variance, not by its root", partial(faulty_pullback, power=-2)),
        ("You multiply by s", partial(faulty_pullback, power=1)),
        ("not divided by dim", partial(faulty_pullback, along=5)),
        ("added, not subtracted", partial(faulty_pullback, along=-1)),
        ("gamma is not used", partial(faulty_pullback, before=False)),
        ("gamma multiplies the result", partial(faulty_pullback, before=False, after=True)),
        ("eps is not used.", lambda x, gamma, eps, g: by_autograd(x, gamma, 0.0, g)),
        ("z is made without it", partial(faulty_pullback, eps_z=0)),
        ("the end lacks it", partial(faulty_pullback, eps_s=0)),
        ("added to the standard deviation", partial(faulty_pullback, outside=True)),
    ],
    "forgotten": [
        ("onto the directions kept", partial(faulty_forgotten, kept=True)),
        ("where the outputs live", partial(faulty_forgotten, side="u")),
        ("span all outputs", partial(faulty_forgotten, side="u", kept=True)),
        ("of 6 numbers, the projection is wrong", partial(faulty_forgotten, transpose=True)),
        ("is a fraction of the", partial(faulty_forgotten, share=False)),
        ("without a singular value", partial(faulty_forgotten, short=True)),
    ],
    "patches_behind_rms": [
        (
            "subtracted from the tokens",
            partial(
                faulty_patches,
                result=lambda q, w, weight, t: (q @ weight.T + t) @ torch.linalg.pinv(weight).T,
            ),
        ),
        ("The scale is taken as 1. Each", partial(faulty_patches, result=without_scale)),
        (
            "and the scale is taken as 1",
            partial(
                faulty_patches, result=lambda q, w, weight, t: without_scale(q, w, weight, 0 * t)
            ),
        ),
        ("These are the negatives", partial(faulty_patches, result=lambda q, *_: -q)),
        (
            "over the size of their token",
            partial(faulty_patches, result=lambda q, w, weight, t: q / size(q, weight, t)),
        ),
        ("first token's offset", partial(faulty_patches, known=lambda t: t[:1].expand_as(t))),
        ("offsets' mean", partial(faulty_patches, known=lambda t: t.mean(0).expand_as(t))),
        ("gamma is not used", partial(faulty_patches, undo=lambda y, gamma: y)),
        ("multiplied by gamma", partial(faulty_patches, undo=torch.mul)),
    ],
}

KEPT = "kept = rows[values {} tolerance * values[0]]"
SYSTEM = "system = torch.cat([columns, {}[..., None]], dim=-1)"

EQUIVALENT = {
    "with_statistics": {},
    "rms_input": {},
    "norm_pullback": {
        "u = x - x.mean(-1, keepdim=True) -> u = x.mean(-1, keepdim=True) - x": (
            "z stands in the result twice, and so its sign does not matter"
        ),
    },
    "forgotten": {
        f"{KEPT.format('>')} -> {KEPT.format('>=')}": "no singular value is equal to the threshold",
    },
    "patches_behind_rms": {
        "return found[..., :-1, 0] -> return found[..., :-1, -1]": "there is one right side",
        f"{SYSTEM.format('-w')} -> {SYSTEM.format('w')}": (
            "the scale comes out negative, and the patches are the same"
        ),
    },
}
