WRONG = [
("with_mean", "one mean over images and tokens", '''
def with_mean(x, known, model, name):
    with torch.no_grad(), minivit.record(model, name) as seen:
        model(known)
    mean = seen[name].mean((0, 1), keepdim=True).expand(1, seen[name].shape[1], -1)
    with torch.no_grad(), minivit.replace(model, {name: mean}):
        return model(x)
'''),
("with_mean", "mean over x instead of known", '''
def with_mean(x, known, model, name):
    with torch.no_grad(), minivit.record(model, name) as seen:
        model(x)
    with torch.no_grad(), minivit.replace(model, {name: seen[name].mean(0, keepdim=True)}):
        return model(x)
'''),
("with_mean", "zeros instead of the mean", '''
def with_mean(x, known, model, name):
    with torch.no_grad(), minivit.record(model, name) as seen:
        model(known)
    with torch.no_grad(), minivit.replace(model, {name: torch.zeros_like(seen[name][:1])}):
        return model(x)
'''),
("with_mean", "the module's output for the mean image instead of its mean output", '''
def with_mean(x, known, model, name):
    with torch.no_grad(), minivit.record(model, name) as seen:
        model(known.mean(0, keepdim=True))
    with torch.no_grad(), minivit.replace(model, {name: seen[name]}):
        return model(x)
'''),
("patched", "replaces all tokens", '''
def patched(x, other, model, name, tokens):
    with torch.no_grad(), minivit.record(model, name) as seen:
        model(other)
    with torch.no_grad(), minivit.replace(model, {name: seen[name]}):
        return model(x)
'''),
("patched", "roles of x and other exchanged", '''
def patched(x, other, model, name, tokens):
    with torch.no_grad(), minivit.record(model, name) as seen:
        model(x)
    def put(out):
        out = out.clone()
        out[:, tokens] = seen[name][:, tokens]
        return out
    with torch.no_grad(), minivit.replace(model, {name: put}):
        return model(other)
'''),
("patched", "indexes images instead of tokens", '''
def patched(x, other, model, name, tokens):
    with torch.no_grad(), minivit.record(model, name) as seen:
        model(other)
    def put(out):
        out = out.clone()
        keep = [t for t in tokens if t < len(out)]
        out[keep] = seen[name][keep]
        return out
    with torch.no_grad(), minivit.replace(model, {name: put}):
        return model(x)
'''),
("patched", "adds instead of replacing", '''
def patched(x, other, model, name, tokens):
    with torch.no_grad(), minivit.record(model, name) as seen:
        model(other)
    def put(out):
        out = out.clone()
        out[:, tokens] += seen[name][:, tokens]
        return out
    with torch.no_grad(), minivit.replace(model, {name: put}):
        return model(x)
'''),
("read_out", "mean before the norm", '''
def read_out(tokens, norm, head):
    return head(norm(tokens.mean(1)))
'''),
("read_out", "class token instead of the mean", '''
def read_out(tokens, norm, head):
    return head(norm(tokens)[:, 0])
'''),
("read_out", "norm forgotten", '''
def read_out(tokens, norm, head):
    return head(tokens.mean(1))
'''),
("add_block", "mean over heads before cutting off", '''
def add_block(R, weights, slopes):
    return R + (weights * slopes).mean(1).relu() @ R
'''),
("add_block", "R on the left", '''
def add_block(R, weights, slopes):
    return R + R @ (weights * slopes).relu().mean(1)
'''),
("add_block", "R not added", '''
def add_block(R, weights, slopes):
    return (weights * slopes).clamp(min=0).mean(1) @ R
'''),
("add_block", "slopes cut off before the product and sum over heads", '''
def add_block(R, weights, slopes):
    return R + (weights * slopes).relu().sum(1) @ R
'''),
("sparse_codes", "keeps the k largest by size, negative ones too", '''
def sparse_codes(x, encoder, bias, k):
    s = x @ encoder.T + bias
    at = s.abs().topk(k, -1).indices
    return torch.zeros_like(s).scatter(-1, at, s.gather(-1, at))
'''),
("sparse_codes", "negative scores not set to zero", '''
def sparse_codes(x, encoder, bias, k):
    s = x @ encoder.T + bias
    v, at = s.topk(k, -1)
    return torch.zeros_like(s).scatter(-1, at, v)
'''),
("sparse_codes", "k largest of the whole batch", '''
def sparse_codes(x, encoder, bias, k):
    s = (x @ encoder.T + bias).relu()
    v, at = s.flatten().topk(k * len(x))
    return torch.zeros_like(s).flatten().scatter(0, at, v).view_as(s)
'''),
("sparse_codes", "k largest per direction: topk over the tokens", '''
def sparse_codes(x, encoder, bias, k):
    s = (x @ encoder.T + bias).relu()
    v, at = s.topk(min(k, len(x)), 0)
    return torch.zeros_like(s).scatter(0, at, v)
'''),
("sparse_codes", "bias forgotten", '''
def sparse_codes(x, encoder, bias, k):
    s = (x @ encoder.T).relu()
    v, at = s.topk(k, -1)
    return torch.zeros_like(s).scatter(-1, at, v)
'''),
]
RIGHT = [
("patched", "forward hooks of PyTorch", '''
def patched(x, other, model, name, tokens):
    module, kept = model.get_submodule(name), []
    handle = module.register_forward_hook(lambda m, i, o: kept.append(o.detach()))
    model(other)
    handle.remove()
    def hook(m, i, o):
        mask = torch.zeros(o.shape[1], dtype=torch.bool)
        mask[tokens] = True
        return torch.where(mask[:, None], kept[0], o)
    handle = module.register_forward_hook(hook)
    try:
        return model(x)
    finally:
        handle.remove()
'''),
("sparse_codes", "sort and a threshold", '''
def sparse_codes(x, encoder, bias, k):
    s = torch.nn.functional.linear(x, encoder, bias).clamp(min=0)
    least = s.sort(dim=1, descending=True).values[:, k - 1 : k]
    return s * (s >= least)
'''),
("add_block", "baddbmm", '''
def add_block(R, weights, slopes):
    A = torch.clip(weights * slopes, min=0).sum(dim=1) / weights.size(1)
    return torch.baddbmm(R, A, R)
'''),
]
