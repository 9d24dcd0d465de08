"""Chapter 19: answers that learners might give."""

from functools import partial

import torch


def by_scatter(maps, ring):
    """With all waves at once."""
    logs = torch.fft.fft2(maps).abs().log().mean(1).mean(0) - 0
    total = torch.zeros(ring.max() + 1, dtype=maps.dtype)
    total = total.index_add(0, ring.flatten(), logs.flatten())
    return total / ring.flatten().bincount() - logs[0, 0]


def faulty_rings(
    maps,
    ring,
    log=torch.log,
    late=lambda x: x,
    end=lambda x: x,
    mean=torch.mean,
    less=1,
    shift=None,
):
    logs = late(log(torch.fft.fft2(maps).abs()).mean((0, 1)))
    if shift:
        logs = shift(logs)
    means = end(torch.stack([mean(logs[ring == k]) for k in range(ring.max() + 1)]))
    return means - less * means[0]


def same(x):
    return x


def by_sums(matrix, waves):
    after = matrix @ waves.real + 1j * (matrix @ waves.imag)
    squares = [(t * t.conj()).real.sum(0) for t in (after, waves)]
    return (squares[0] / squares[1]) ** 0.5


def faulty_gains(matrix, waves, power=1, by=lambda waves: waves.norm(dim=0)):
    return ((matrix.to(waves.dtype) @ waves).norm(dim=0) / by(waves)) ** power


def by_loops(white, keep, power):
    images = []
    for image in white:
        rest = torch.stack([torch.fft.ifft2(torch.fft.fft2(x).where(keep, 0)).real for x in image])
        images.append(rest * power**0.5 / rest.square().mean().sqrt())
    return torch.stack(images)


def cut(white, keep):
    return torch.fft.ifft2(torch.fft.fft2(white) * keep).real


def faulty_noise(white, keep, power, over=(1, 2, 3), root=0.5, made=cut):
    noise = made(white, keep)
    return noise * power**root / noise.square().mean(over, keepdim=True).sqrt()


def set_before(white, keep, power):
    size = white.square().mean((1, 2, 3), keepdim=True)
    return cut(white * (power / size).sqrt(), keep)


def by_index(logs):
    count = -(-len(logs) // 2)
    return torch.stack([logs[i, i] - logs[0, 0] for i in range(count)])


def counted(answers, shapes, textures):
    conflict = [
        (a, s, t)
        for a, s, t in zip(answers.tolist(), shapes.tolist(), textures.tolist(), strict=True)
        if s != t
    ]
    shape = sum(a == s for a, s, _ in conflict)
    return shape / sum(a in (s, t) for a, s, t in conflict)


def faulty_share(answers, shapes, textures, left=True, below="decided", above="shape"):
    keep = shapes != textures if left else torch.ones_like(shapes, dtype=torch.bool)
    counts = {
        "shape": ((answers == shapes) & keep).sum(),
        "texture": ((answers == textures) & keep).sum(),
        "conflict": keep.sum(),
        "all": torch.tensor(len(answers)),
    }
    counts["decided"] = counts["shape"] + counts["texture"]
    return counts[above] / counts[below]


CORRECT = {
    "ring_means": by_scatter,
    "gains": by_sums,
    "noise_in_band": by_loops,
    "half_diagonal": by_index,
    "shape_share": counted,
}

WRONG = {
    "ring_means": [
        ("Nothing is subtracted", partial(faulty_rings, less=0)),
        ("of the mean amplitude", partial(faulty_rings, log=same, late=torch.log)),
        ("of the mean over a ring", partial(faulty_rings, log=same, end=torch.log)),
        ("No logarithm", partial(faulty_rings, log=same)),
        ("logarithms of squares", partial(faulty_rings, log=lambda x: 2 * x.log())),
        ("added up", partial(faulty_rings, mean=torch.sum)),
        ("do not shift", partial(faulty_rings, shift=torch.fft.fftshift)),
    ],
    "gains": [
        ("not 1: divide", partial(faulty_gains, by=lambda waves: 1)),
        ("squares of sizes", partial(faulty_gains, power=2)),
        ("transposed", lambda matrix, waves: faulty_gains(matrix.T, waves)),
        ("Only the real part", lambda matrix, waves: faulty_gains(matrix, waves.real)),
        ("upside down", partial(faulty_gains, power=-1)),
    ],
    "noise_in_band": [
        ("its power is not changed", lambda white, keep, power: cut(white, keep)),
        ("Set it after", set_before),
        ("All images together", partial(faulty_noise, over=(0, 1, 2, 3))),
        ("Each channel has", partial(faulty_noise, over=(2, 3))),
        ("its root is the factor", partial(faulty_noise, root=1)),
        ("outside the band", partial(faulty_noise, made=lambda white, keep: cut(white, ~keep))),
        ("All waves", partial(faulty_noise, made=lambda white, keep: white)),
    ],
    "half_diagonal": [
        ("Nothing is subtracted", lambda logs: logs.diagonal()[: (len(logs) + 1) // 2]),
        (
            "after a shift",
            lambda logs: logs.diagonal()[len(logs) // 2 :] - logs.diagonal()[len(logs) // 2],
        ),
        ("the first row", lambda logs: logs[0, : (len(logs) + 1) // 2] - logs[0, 0]),
    ],
    "shape_share": [
        ("count on both sides", partial(faulty_share, left=False)),
        (
            "as decided by shape",
            lambda a, s, t: (a == s).sum() / ((a == s) | (a == t)).sum(),
        ),
        ("by neither cue", partial(faulty_share, below="conflict")),
        ("has all images", partial(faulty_share, below="all")),
        ("share of texture", partial(faulty_share, above="texture")),
        ("shape over texture", partial(faulty_share, below="texture")),
    ],
}

SAME = "for truth values the product is 'and'"

EQUIVALENT = {name: {} for name in CORRECT} | {
    "shape_share": {
        "texture = ((answers == textures) & conflict).sum() -> "
        "texture = ((answers == textures) * conflict).sum()": SAME,
        "shape = ((answers == shapes) & conflict).sum() -> "
        "shape = ((answers == shapes) * conflict).sum()": SAME,
    },
}
