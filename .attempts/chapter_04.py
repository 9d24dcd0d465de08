TIMM = '''
def logits_from_file(images, state, heads):
    depth = 1 + max([int(n.split(".")[1]) for n in state if n.startswith("blocks.")], default=0)
    parts = ["norm1", "attn.qkv", "attn.proj", "norm2", "mlp.fc1", "mlp.fc2"]
    layers = ["patch_embed.proj", "norm", "head"] + [f"blocks.{i}.{p}" for i in range(depth) for p in parts]
    names = {f"{l}.{e}" for l in layers for e in ("weight", "bias")} | {"cls_token", "pos_embed"}
    for n in sorted(names ^ set(state)):
        raise ValueError(n)
    lin = lambda x, n: F.linear(x, state[n + ".weight"], state[n + ".bias"])
    norm = lambda x, n: F.layer_norm(x, x.shape[-1:], state[n + ".weight"], state[n + ".bias"], 1e-6)
    w = state["patch_embed.proj.weight"]
    x = F.conv2d(images, w, state["patch_embed.proj.bias"], stride=w.shape[-1]).flatten(2).mT
    x = torch.cat([state["cls_token"].expand(len(x), -1, -1), x], 1) + state["pos_embed"]
    for i in range(depth):
        q, k, v = rearrange(lin(norm(x, f"blocks.{i}.norm1"), f"blocks.{i}.attn.qkv"), "b n (t h d) -> t b h n d", t=3, h=heads)
        a = rearrange(F.scaled_dot_product_attention(q, k, v), "b h n d -> b n (h d)")
        x = x + lin(a, f"blocks.{i}.attn.proj")
        x = x + lin(F.gelu(lin(norm(x, f"blocks.{i}.norm2"), f"blocks.{i}.mlp.fc1")), f"blocks.{i}.mlp.fc2")
    return lin(norm(x[:, 0], "norm"), "head")
'''
WRONG = [
("layer_norm", "unbiased variance", '''
def layer_norm(x, weight, bias, eps):
    m = x.mean(-1, keepdim=True)
    v = x.var(-1, keepdim=True)
    return (x - m) / torch.sqrt(v + eps) * weight + bias
'''),
("layer_norm", "normalises over the tokens", '''
def layer_norm(x, weight, bias, eps):
    m = x.mean(1, keepdim=True)
    v = x.var(1, keepdim=True, correction=0)
    return (x - m) / torch.sqrt(v + eps) * weight + bias
'''),
("layer_norm", "eps added to the standard deviation instead of the variance", '''
def layer_norm(x, weight, bias, eps):
    m = x.mean(-1, keepdim=True)
    s = x.std(-1, keepdim=True, unbiased=False)
    return (x - m) / (s + eps) * weight + bias
'''),
("layer_norm", "divides by the variance, root forgotten", '''
def layer_norm(x, weight, bias, eps):
    m = x.mean(-1, keepdim=True)
    v = ((x - m) ** 2).mean(-1, keepdim=True)
    return (x - m) / (v + eps) * weight + bias
'''),
("layer_norm", "eps forgotten", '''
def layer_norm(x, weight, bias, eps):
    m = x.mean(-1, keepdim=True)
    v = ((x - m) ** 2).mean(-1, keepdim=True)
    return (x - m) / v.sqrt() * weight + bias
'''),
("layer_norm", "keepdim forgotten", '''
def layer_norm(x, weight, bias, eps):
    m = x.mean(-1)
    v = x.var(-1, unbiased=False)
    return (x - m) / torch.sqrt(v + eps) * weight + bias
'''),
("layer_norm", "shift forgotten", '''
def layer_norm(x, weight, bias, eps):
    m = x.mean(-1, keepdim=True)
    v = ((x - m) ** 2).mean(-1, keepdim=True)
    return (x - m) / torch.sqrt(v + eps) * weight
'''),
("layer_norm", "mean not subtracted in the result: RMS-like", '''
def layer_norm(x, weight, bias, eps):
    v = x.var(-1, keepdim=True, unbiased=False)
    return x / torch.sqrt(v + eps) * weight + bias
'''),
("block", "post-norm instead of pre-norm", '''
def block(x, norm1, attention, norm2, mlp):
    x = norm1(x + attention(x))
    return norm2(x + mlp(x))
'''),
("block", "no residual around the MLP", '''
def block(x, norm1, attention, norm2, mlp):
    x = x + attention(norm1(x))
    return mlp(norm2(x))
'''),
("block", "both branches read the input: parallel", '''
def block(x, norm1, attention, norm2, mlp):
    return x + attention(norm1(x)) + mlp(norm2(x))
'''),
("block", "the residual takes the normed stream", '''
def block(x, norm1, attention, norm2, mlp):
    n = norm1(x)
    x = n + attention(n)
    n = norm2(x)
    return n + mlp(n)
'''),
("block", "+= changes the input in place", '''
def block(x, norm1, attention, norm2, mlp):
    x += attention(norm1(x))
    x += mlp(norm2(x))
    return x
'''),
("ordered_block", "parallel: the MLP reads what attention has added", '''
def ordered_block(x, norm1, attention, norm2, mlp, order):
    if order == "parallel":
        n = norm1(x)
        x = x + attention(n)
        return x + mlp(norm1(x))
    x = x + norm1(attention(x))
    return x + norm2(mlp(x))
'''),
("ordered_block", "res-post written as post-norm: the norm after the addition", '''
def ordered_block(x, norm1, attention, norm2, mlp, order):
    if order == "parallel":
        n = norm1(x)
        return x + attention(n) + mlp(n)
    x = norm1(x + attention(x))
    return norm2(x + mlp(x))
'''),
("ordered_block", "parallel: norm2 for the MLP", '''
def ordered_block(x, norm1, attention, norm2, mlp, order):
    if order == "parallel":
        return x + attention(norm1(x)) + mlp(norm2(x))
    x = x + norm1(attention(x))
    return x + norm2(mlp(x))
'''),
("ordered_block", "res-post: the MLP reads the block's input", '''
def ordered_block(x, norm1, attention, norm2, mlp, order):
    if order == "parallel":
        n = norm1(x)
        return x + attention(n) + mlp(n)
    return x + norm1(attention(x)) + norm2(mlp(x))
'''),
("drop_path", "one decision for every number: ordinary dropout", '''
def drop_path(branch, rate, training):
    return F.dropout(branch, rate, training)
'''),
("drop_path", "no scaling of what is kept", '''
def drop_path(branch, rate, training):
    if not training:
        return branch
    keep = torch.rand(len(branch), 1, 1) >= rate
    return branch * keep
'''),
("drop_path", "keeps with probability rate instead of dropping", '''
def drop_path(branch, rate, training):
    if not training or rate == 0:
        return branch
    keep = (torch.rand(len(branch), 1, 1) < rate).float()
    return branch * keep / rate
'''),
("drop_path", "one decision for the whole batch", '''
def drop_path(branch, rate, training):
    if not training:
        return branch
    if torch.rand(()) < rate:
        return torch.zeros_like(branch)
    return branch / (1 - rate)
'''),
("drop_path", "one decision for each token instead of each image", '''
def drop_path(branch, rate, training):
    if not training:
        return branch
    keep = (torch.rand(*branch.shape[:2], 1) >= rate).to(branch.dtype)
    return branch * keep / (1 - rate)
'''),
("drop_path", "drops when not training as well", '''
def drop_path(branch, rate, training):
    keep = (torch.rand(len(branch), 1, 1) >= rate).to(branch.dtype)
    return branch * keep / (1 - rate)
'''),
("logit_shares", "every part divided by its own deviation", '''
def logit_shares(parts, gamma, weight, eps):
    c = parts - parts.mean(-1, keepdim=True)
    z = c / torch.sqrt(c.square().mean(-1, keepdim=True) + eps)
    return z * gamma @ weight.T
'''),
("logit_shares", "subtracts the mean of the sum from every part", '''
def logit_shares(parts, gamma, weight, eps):
    x = parts.sum(0)
    m = x.mean(-1, keepdim=True)
    s = torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + eps)
    return (parts - m) / s * gamma @ weight.T
'''),
("logit_shares", "no mean subtracted from the parts", '''
def logit_shares(parts, gamma, weight, eps):
    x = parts.sum(0)
    s = torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + eps)
    return parts / s * gamma @ weight.T
'''),
("logit_shares", "unbiased variance of the stream", '''
def logit_shares(parts, gamma, weight, eps):
    x = parts.sum(0)
    s = torch.sqrt(x.var(-1, keepdim=True) + eps)
    return (parts - parts.mean(-1, keepdim=True)) / s * gamma @ weight.T
'''),
("logits_from_file", "does not notice names that it has no use for", TIMM.replace("names ^ set(state)", "names - set(state)")),
("logits_from_file", "tanh approximation of GELU", TIMM.replace(".mlp.fc1\"))", ".mlp.fc1\"), approximate=\"tanh\")").replace("F.gelu(lin(norm(x, f\"blocks.{i}.norm2\"), f\"blocks.{i}.mlp.fc1\"), ", "F.gelu(lin(norm(x, f\"blocks.{i}.norm2\"), f\"blocks.{i}.mlp.fc1\"), ")),
("logits_from_file", "forgets the last norm", TIMM.replace('lin(norm(x[:, 0], "norm"), "head")', 'lin(x[:, 0], "head")')),
("logits_from_file", "head reads the mean of all tokens", TIMM.replace('norm(x[:, 0], "norm")', 'norm(x, "norm").mean(1)')),
("logits_from_file", "PyTorch's default eps of 1e-5", TIMM.replace("1e-6", "1e-5")),
("logits_from_file", "a missing name gives a KeyError", TIMM.replace("    for n in sorted(names ^ set(state)):\n        raise ValueError(n)\n", "    for n in set(state) - names:\n        raise ValueError(n)\n")),
]
RIGHT = [
("layer_norm", "F.layer_norm", '''
layer_norm = lambda x, weight, bias, eps: F.layer_norm(x, [x.size(-1)], weight, bias, eps)
'''),
("layer_norm", "rsqrt and E[x^2] - m^2 in float64", '''
def layer_norm(x, weight, bias, eps):
    y = x.double()
    m = y.mean(-1, keepdim=True)
    v = (y * y).mean(-1, keepdim=True) - m * m
    return ((y - m) * torch.rsqrt(v + eps)).to(x.dtype) * weight + bias
'''),
("block", "a loop over the two branches", '''
def block(x, norm1, attention, norm2, mlp):
    for norm, branch in ((norm1, attention), (norm2, mlp)):
        x = torch.add(branch(norm(x)), x)
    return x
'''),
("drop_path", "bernoulli, divided by the probability", '''
def drop_path(branch, rate, training):
    if training is False:
        return branch
    kept = torch.bernoulli(torch.full([branch.shape[0]], 1 - rate)) / (1 - rate)
    return torch.einsum("b,bnd->bnd", kept.to(branch.dtype), branch)
'''),
("logit_shares", "a matrix for the whole map, einsum", '''
def logit_shares(parts, gamma, weight, eps):
    dim = len(gamma)
    center = torch.eye(dim, dtype=parts.dtype) - torch.ones(dim, dim, dtype=parts.dtype) / dim
    stream = parts.sum(0) @ center
    scale = 1 / (stream.pow(2).mean(1) + eps) ** 0.5
    return torch.einsum("pbd,de,e,ce,b->pbc", parts, center, gamma, weight, scale)
'''),
("logits_from_file", "the name check and forward pass of a plan in the hint", TIMM),
]
