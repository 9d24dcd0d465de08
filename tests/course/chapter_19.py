import torch


def ring_means(maps, ring):
    """With all waves at once."""
    logs = torch.fft.fft2(maps).abs().log().mean(1).mean(0) - 0
    total = torch.zeros(ring.max() + 1, dtype=maps.dtype)
    total = total.index_add(0, ring.flatten(), logs.flatten())
    return total / ring.flatten().bincount() - logs[0, 0]


def gains(matrix, waves):
    after = matrix @ waves.real + 1j * (matrix @ waves.imag)
    squares = [(t * t.conj()).real.sum(0) for t in (after, waves)]
    return (squares[0] / squares[1]) ** 0.5


def noise_in_band(white, keep, power):
    images = []
    for image in white:
        rest = torch.stack([torch.fft.ifft2(torch.fft.fft2(x).where(keep, 0)).real for x in image])
        images.append(rest * power**0.5 / rest.square().mean().sqrt())
    return torch.stack(images)


def half_diagonal(logs):
    count = -(-len(logs) // 2)
    return torch.stack([logs[i, i] - logs[0, 0] for i in range(count)])


def shape_share(answers, shapes, textures):
    a, s, t = torch.stack([answers, shapes, textures])[:, shapes != textures]
    return (a == s).sum() / ((a == s) | (a == t)).sum()


EQUIVALENT = [
    ("shape_share", "for truth values the product is 'and'", "textures) & -> textures) *", "shapes) & -> shapes) *"),
]  # fmt: skip
