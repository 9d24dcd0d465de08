WRONG = [
("ring_means", "logarithm after the mean", '''
def ring_means(maps, ring):
    a = torch.fft.fft2(maps).abs().mean((0, 1))
    out = torch.stack([a[ring == k].mean() for k in range(int(ring.max()) + 1)]).log()
    return out - out[0]
'''),
("ring_means", "constant not subtracted", '''
def ring_means(maps, ring):
    a = torch.fft.fft2(maps).abs().log().mean((0, 1))
    return torch.stack([a[ring == k].mean() for k in range(int(ring.max()) + 1)])
'''),
("ring_means", "power (squared amplitude)", '''
def ring_means(maps, ring):
    a = torch.fft.fft2(maps).abs().square().log().mean((0, 1))
    out = torch.stack([a[ring == k].mean() for k in range(int(ring.max()) + 1)])
    return out - out[0]
'''),
("ring_means", "shifted spectrum with an unshifted ring", '''
def ring_means(maps, ring):
    a = torch.fft.fftshift(torch.fft.fft2(maps), dim=(-2, -1)).abs().log().mean((0, 1))
    out = torch.stack([a[ring == k].mean() for k in range(int(ring.max()) + 1)])
    return out - out[0]
'''),
("gains", "not divided by the wave's length", '''
def gains(matrix, waves):
    return (matrix.to(waves.dtype) @ waves).norm(dim=0)
'''),
("gains", "rows instead of columns of waves", '''
def gains(matrix, waves):
    return (matrix.to(waves.dtype) @ waves).norm(dim=1) / waves.norm(dim=1)
'''),
("gains", "real part only", '''
def gains(matrix, waves):
    return (matrix @ waves.real).norm(dim=0) / waves.real.norm(dim=0)
'''),
("noise_in_band", "scaled before the band is cut out", '''
def noise_in_band(white, keep, power):
    white = white * (power / white.square().mean((1, 2, 3), keepdim=True)).sqrt()
    return torch.fft.ifft2(torch.fft.fft2(white) * keep).real
'''),
("noise_in_band", "root of the power forgotten", '''
def noise_in_band(white, keep, power):
    n = torch.fft.ifft2(torch.fft.fft2(white) * keep).real
    return n * power / n.square().mean((1, 2, 3), keepdim=True)
'''),
("noise_in_band", "one scale for the batch", '''
def noise_in_band(white, keep, power):
    n = torch.fft.ifft2(torch.fft.fft2(white) * keep).real
    return n * (power / n.square().mean()).sqrt()
'''),
("noise_in_band", "each channel scaled on its own", '''
def noise_in_band(white, keep, power):
    n = torch.fft.ifft2(torch.fft.fft2(white) * keep).real
    return n * (power / n.square().mean((2, 3), keepdim=True)).sqrt()
'''),
("noise_in_band", "keeps everything outside the band", '''
def noise_in_band(white, keep, power):
    n = torch.fft.ifft2(torch.fft.fft2(white) * ~keep).real
    return n * (power / n.square().mean((1, 2, 3), keepdim=True)).sqrt()
'''),
("half_diagonal", "one too few for odd n: n // 2", '''
def half_diagonal(logs):
    d = logs.diagonal()[: len(logs) // 2]
    return d - d[0]
'''),
("half_diagonal", "the whole diagonal", '''
def half_diagonal(logs):
    d = logs.diagonal()
    return d - d[0]
'''),
("half_diagonal", "second half of the diagonal, as if shifted", '''
def half_diagonal(logs):
    d = logs.diagonal()[len(logs) // 2 :]
    return d - d[0]
'''),
("half_diagonal", "constant not subtracted", '''
def half_diagonal(logs):
    return logs.diagonal()[: (len(logs) + 1) // 2]
'''),
("shape_share", "images whose cues agree are counted", '''
def shape_share(answers, shapes, textures):
    by = (answers == shapes) | (answers == textures)
    return (answers[by] == shapes[by]).double().mean()
'''),
("shape_share", "divides by all images that disagree", '''
def shape_share(answers, shapes, textures):
    d = shapes != textures
    return (answers == shapes)[d].double().mean()
'''),
("shape_share", "share of the texture", '''
def shape_share(answers, shapes, textures):
    d = shapes != textures
    s, t = ((answers == shapes) & d).sum(), ((answers == textures) & d).sum()
    return t / (s + t)
'''),
]
RIGHT = [
("ring_means", "scatter into rings", '''
def ring_means(maps, ring):
    logs = torch.log(torch.abs(torch.fft.fft(torch.fft.fft(maps, dim=-1), dim=-2)))
    flat = logs.flatten(2).mean(dim=1).mean(dim=0)
    r = ring.flatten().long()
    means = torch.zeros(int(r.max()) + 1, dtype=flat.dtype).index_add(0, r, flat) / torch.bincount(r)
    return means - means[0]
'''),
("shape_share", "Python loop", '''
def shape_share(answers, shapes, textures):
    shape = texture = 0
    for a, s, t in zip(answers.tolist(), shapes.tolist(), textures.tolist()):
        if s != t:
            shape += a == s
            texture += a == t
    return shape / (shape + texture)
'''),
]
