RES = '''
def resized_mixing(x, up, up_bias, down, down_bias, old, new):
    def resize(images):
        images = images.reshape(1, -1, *old)
        return F.interpolate(images, size=tuple(new), mode="bilinear", align_corners=False).flatten(2)[0]
    n = old[0] * old[1] / (new[0] * new[1])
    u = resize(up) * n
    d = resize(down.T).T
    b = resize(down_bias[None])[0]
    return F.linear(F.gelu(F.linear(x.mT, u, up_bias)), d, b).mT
'''
WRONG = [
("mix_tokens", "mixes features: F.linear on the last axis without transposing the tokens", '''
def mix_tokens(x, up, up_bias, down, down_bias):
    h = F.gelu(x @ up.mT + up_bias)
    return h @ down.mT + down_bias
'''),
("mix_tokens", "no GELU", '''
def mix_tokens(x, up, up_bias, down, down_bias):
    return F.linear(F.linear(x.mT, up, up_bias), down, down_bias).mT
'''),
("mix_tokens", "does not transpose back", '''
def mix_tokens(x, up, up_bias, down, down_bias):
    return F.linear(F.gelu(F.linear(x.mT, up, up_bias)), down, down_bias)
'''),
("mix_tokens", "adds the residual", '''
def mix_tokens(x, up, up_bias, down, down_bias):
    return x + F.linear(F.gelu(F.linear(x.mT, up, up_bias)), down, down_bias).mT
'''),
("mix_tokens", "ReLU instead of GELU", '''
def mix_tokens(x, up, up_bias, down, down_bias):
    h = torch.relu(F.linear(x.transpose(1, 2), up, up_bias))
    return F.linear(h, down, down_bias).transpose(1, 2)
'''),
("distance_from_alike", "mean over features instead of tokens", '''
def distance_from_alike(x):
    d = x - x.mean(-1, keepdim=True)
    return d.norm(dim=(1, 2)) / x.norm(dim=(1, 2))
'''),
("distance_from_alike", "square root forgotten: ratio of squares", '''
def distance_from_alike(x):
    d = x - x.mean(1, keepdim=True)
    return d.square().sum((1, 2)) / x.square().sum((1, 2))
'''),
("distance_from_alike", "one number for the whole batch", '''
def distance_from_alike(x):
    d = x - x.mean(1, keepdim=True)
    return (d.norm() / x.norm()).expand(len(x))
'''),
("distance_from_alike", "mean of the ratios of each token instead of one norm for the image", '''
def distance_from_alike(x):
    d = x - x.mean(1, keepdim=True)
    return (d.norm(dim=-1) / x.norm(dim=-1)).mean(1)
'''),
("spatial_gate", "bias along the features", '''
def spatial_gate(x, weight, bias, eps):
    u, v = x.chunk(2, -1)
    v = F.layer_norm(v, v.shape[-1:], eps=eps)
    return u * (F.linear(v.mT, weight).mT + bias[: v.shape[-1]])
'''),
("spatial_gate", "halves swapped", '''
def spatial_gate(x, weight, bias, eps):
    v, u = x.chunk(2, -1)
    v = F.layer_norm(v, v.shape[-1:], eps=eps)
    return u * (weight @ v + bias[:, None])
'''),
("spatial_gate", "no norm of V", '''
def spatial_gate(x, weight, bias, eps):
    u, v = x.chunk(2, -1)
    return u * (weight @ v + bias[:, None])
'''),
("spatial_gate", "weight transposed", '''
def spatial_gate(x, weight, bias, eps):
    u, v = x.chunk(2, -1)
    v = F.layer_norm(v, v.shape[-1:], eps=eps)
    return u * (weight.T @ v + bias[:, None])
'''),
("resized_mixing", "up not multiplied by old / new", RES.replace("resize(up) * n", "resize(up)")),
("resized_mixing", "factor upside down: new / old", RES.replace("resize(up) * n", "resize(up) / n")),
("resized_mixing", "align_corners=True", RES.replace("align_corners=False", "align_corners=True")),
("resized_mixing", "down scaled as well", RES.replace("resize(down.T).T", "resize(down.T).T * n")),
]
RIGHT = [
("mix_tokens", "einsum", '''
def mix_tokens(x, up, up_bias, down, down_bias):
    h = torch.einsum("ht,btd->bhd", up, x) + up_bias[None, :, None]
    h = h * 0.5 * (1 + torch.erf(h / 2 ** 0.5))
    return torch.einsum("th,bhd->btd", down, h) + down_bias.unsqueeze(-1)
'''),
("distance_from_alike", "from the norm of the mean (Pythagoras), float64", '''
def distance_from_alike(x):
    x = x.double()
    whole = (x * x).flatten(1).sum(1)
    same = x.shape[1] * (x.mean(1) ** 2).sum(1)
    return ((whole - same) / whole).clamp(min=0).sqrt().float()
'''),
("spatial_gate", "loop over images, norm by hand", '''
def spatial_gate(x, weight, bias, eps):
    half = x.shape[2] // 2
    out = []
    for image in x:
        u, v = image[:, :half], image[:, half:]
        v = (v - v.mean(1, keepdim=True)) / (v.var(1, keepdim=True, correction=0) + eps).sqrt()
        out.append(u * torch.addmm(bias.unsqueeze(1), weight, v))
    return torch.stack(out)
'''),
]
