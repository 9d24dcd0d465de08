HELP = '''
def scaled_dot_product_attention(q, k, v, mask=None):
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
'''
WRONG = [
("scaled_dot_product_attention", "no division by the root of d", '''
def scaled_dot_product_attention(q, k, v, mask=None):
    return (q @ k.mT).softmax(-1) @ v
'''),
("scaled_dot_product_attention", "softmax over the queries", '''
def scaled_dot_product_attention(q, k, v, mask=None):
    return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-2) @ v
'''),
("scaled_dot_product_attention", "divides by d instead of its root", '''
def scaled_dot_product_attention(q, k, v, mask=None):
    d = q.shape[-1]
    return torch.softmax(q @ k.transpose(-1, -2) / d, dim=-1) @ v
'''),
("scaled_dot_product_attention", "scales by the number of keys instead of the width d", '''
def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ k.mT / k.shape[-2] ** 0.5
    return scores.softmax(-1) @ v
'''),
("scaled_dot_product_attention", "divides after the softmax", '''
def scaled_dot_product_attention(q, k, v, mask=None):
    weights = torch.softmax(q @ k.mT, dim=-1) / math.sqrt(q.shape[-1])
    return weights @ v
'''),
("scaled_dot_product_attention", "k.T reverses all axes of a batch", '''
def scaled_dot_product_attention(q, k, v, mask=None):
    weights = torch.softmax(q @ k.T / math.sqrt(q.shape[-1]), dim=-1)
    return weights @ v
'''),
("scaled_dot_product_attention", "exponentials without subtracting the maximum: overflow", '''
def scaled_dot_product_attention(q, k, v, mask=None):
    e = torch.exp(q @ k.mT / math.sqrt(q.shape[-1]))
    return e / e.sum(-1, keepdim=True) @ v
'''),
("multi_head", "reshapes to heads without transposing tokens and heads", HELP + '''
def multi_head(x, w_qkv, w_out, heads):
    b, n, d = x.shape
    q, k, v = (x @ w_qkv).chunk(3, -1)
    q, k, v = (t.reshape(b, heads, n, d // heads) for t in (q, k, v))
    out = scaled_dot_product_attention(q, k, v)
    return out.reshape(b, n, d) @ w_out
'''),
("multi_head", "does not transpose back before merging the heads", HELP + '''
def multi_head(x, w_qkv, w_out, heads):
    b, n, d = x.shape
    q, k, v = (x @ w_qkv).chunk(3, -1)
    q, k, v = (t.reshape(b, n, heads, d // heads).transpose(1, 2) for t in (q, k, v))
    out = scaled_dot_product_attention(q, k, v)
    return out.reshape(b, n, d) @ w_out
'''),
("multi_head", "forgets the output matrix", HELP + '''
def multi_head(x, w_qkv, w_out, heads):
    q, k, v = rearrange(x @ w_qkv, "b n (t h d) -> t b h n d", t=3, h=heads)
    return rearrange(scaled_dot_product_attention(q, k, v), "b h n d -> b n (h d)")
'''),
("multi_head", "splits the columns into heads first and q, k, v within each head", HELP + '''
def multi_head(x, w_qkv, w_out, heads):
    q, k, v = rearrange(x @ w_qkv, "b n (h t d) -> t b h n d", t=3, h=heads)
    return rearrange(scaled_dot_product_attention(q, k, v), "b h n d -> b n (h d)") @ w_out
'''),
("multi_head", "interleaves the heads when splitting and merging: head is the fast axis", HELP + '''
def multi_head(x, w_qkv, w_out, heads):
    q, k, v = rearrange(x @ w_qkv, "b n (t d h) -> t b h n d", t=3, h=heads)
    return rearrange(scaled_dot_product_attention(q, k, v), "b h n d -> b n (d h)") @ w_out
'''),
("multi_head", "scales by the root of dim instead of the head's width", '''
def multi_head(x, w_qkv, w_out, heads):
    q, k, v = rearrange(x @ w_qkv, "b n (t h d) -> t b h n d", t=3, h=heads)
    a = torch.softmax(q @ k.mT / x.shape[-1] ** 0.5, -1)
    return rearrange(a @ v, "b h n d -> b n (h d)") @ w_out
'''),
("masked_softmax", "zeroes the weights after the softmax without renormalising", '''
def masked_softmax(scores, mask):
    return scores.softmax(-1) * mask
'''),
("masked_softmax", "minus infinity everywhere gives NaN in a row with nothing allowed", '''
def masked_softmax(scores, mask):
    return scores.masked_fill(~mask, float("-inf")).softmax(-1)
'''),
("masked_softmax", "mask inverted: fills where a query may attend", '''
def masked_softmax(scores, mask):
    w = scores.masked_fill(mask, torch.finfo(scores.dtype).min).softmax(-1)
    return w * ~mask
'''),
("masked_softmax", "a row with nothing allowed gets equal weights instead of zeros", '''
def masked_softmax(scores, mask):
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(-1)
'''),
("masked_softmax", "sets masked scores to zero, which the softmax turns into weight", '''
def masked_softmax(scores, mask):
    return (scores * mask).softmax(dim=-1)
'''),
("antisymmetric_share", "w_q.T @ w_k instead of w_q @ w_k.T", '''
def antisymmetric_share(w_q, w_k):
    B = w_q.T @ w_k
    A = (B - B.T) / 2
    return (A ** 2).sum() / (B ** 2).sum()
'''),
("antisymmetric_share", "norm not squared", '''
def antisymmetric_share(w_q, w_k):
    B = w_q @ w_k.T
    A = (B - B.T) / 2
    return torch.linalg.norm(A) / torch.linalg.norm(B)
'''),
("antisymmetric_share", "forgets to halve the antisymmetric part", '''
def antisymmetric_share(w_q, w_k):
    B = w_q @ w_k.T
    A = B - B.T
    return A.square().sum() / B.square().sum()
'''),
("grouped_query_attention", "repeat instead of repeat_interleave: heads far apart share a group", HELP + '''
def grouped_query_attention(x, w_q, w_kv, w_out, heads):
    d = x.shape[-1] // heads
    groups = w_kv.shape[1] // (2 * d)
    q = rearrange(x @ w_q, "b n (h d) -> b h n d", h=heads)
    k, v = rearrange(x @ w_kv, "b n (t g d) -> t b g n d", t=2, g=groups)
    k, v = (t.repeat(1, heads // groups, 1, 1) for t in (k, v))
    return rearrange(scaled_dot_product_attention(q, k, v), "b h n d -> b n (h d)") @ w_out
'''),
("grouped_query_attention", "keys and values of each group side by side instead of all keys first", HELP + '''
def grouped_query_attention(x, w_q, w_kv, w_out, heads):
    d = x.shape[-1] // heads
    groups = w_kv.shape[1] // (2 * d)
    q = rearrange(x @ w_q, "b n (h d) -> b h n d", h=heads)
    k, v = rearrange(x @ w_kv, "b n (g t d) -> t b g n d", t=2, g=groups)
    k, v = (t.repeat_interleave(heads // groups, 1) for t in (k, v))
    return rearrange(scaled_dot_product_attention(q, k, v), "b h n d -> b n (h d)") @ w_out
'''),
("grouped_query_attention", "keys and values shared along the token axis: repeats the wrong axis, one group assumed", HELP + '''
def grouped_query_attention(x, w_q, w_kv, w_out, heads):
    d = x.shape[-1] // heads
    q = rearrange(x @ w_q, "b n (h d) -> b h n d", h=heads)
    k, v = (x @ w_kv).chunk(2, -1)
    k, v = k[..., :d].unsqueeze(1), v[..., :d].unsqueeze(1)
    return rearrange(scaled_dot_product_attention(q, k, v), "b h n d -> b n (h d)") @ w_out
'''),
("grouped_query_attention", "keys and values swapped", HELP + '''
def grouped_query_attention(x, w_q, w_kv, w_out, heads):
    d = x.shape[-1] // heads
    groups = w_kv.shape[1] // (2 * d)
    q = rearrange(x @ w_q, "b n (h d) -> b h n d", h=heads)
    v, k = rearrange(x @ w_kv, "b n (t g d) -> t b g n d", t=2, g=groups)
    k, v = (t.repeat_interleave(heads // groups, 1) for t in (k, v))
    return rearrange(scaled_dot_product_attention(q, k, v), "b h n d -> b n (h d)") @ w_out
'''),
("chunked_attention", "softmax within each chunk, results averaged", '''
def chunked_attention(q, k, v, chunk):
    outs = []
    for i in range(0, k.shape[-2], chunk):
        s = q @ k[..., i : i + chunk, :].mT / q.shape[-1] ** 0.5
        outs.append(s.softmax(-1) @ v[..., i : i + chunk, :])
    return sum(outs) / len(outs)
'''),
("chunked_attention", "does not rescale the old sums when the maximum changes", '''
def chunked_attention(q, k, v, chunk):
    m = torch.full(q.shape[:-1], -float("inf"))[..., None]
    num, den = 0, 0
    for i in range(0, k.shape[-2], chunk):
        s = q @ k[..., i : i + chunk, :].mT / q.shape[-1] ** 0.5
        m = torch.maximum(m, s.amax(-1, keepdim=True))
        e = torch.exp(s - m)
        num = num + e @ v[..., i : i + chunk, :]
        den = den + e.sum(-1, keepdim=True)
    return num / den
'''),
("chunked_attention", "no maximum subtracted: overflow for large scores", '''
def chunked_attention(q, k, v, chunk):
    num, den = 0, 0
    for i in range(0, k.shape[-2], chunk):
        e = torch.exp(q @ k[..., i : i + chunk, :].mT / q.shape[-1] ** 0.5)
        num = num + e @ v[..., i : i + chunk, :]
        den = den + e.sum(-1, keepdim=True)
    return num / den
'''),
("chunked_attention", "the last, incomplete chunk is left out", '''
def chunked_attention(q, k, v, chunk):
    m = torch.full(q.shape[:-1], -float("inf"))[..., None]
    num, den = 0, 0
    chunk = min(chunk, k.shape[-2])
    for i in range(k.shape[-2] // chunk):
        kk, vv = k[..., i * chunk : (i + 1) * chunk, :], v[..., i * chunk : (i + 1) * chunk, :]
        s = q @ kk.mT / q.shape[-1] ** 0.5
        new = torch.maximum(m, s.amax(-1, keepdim=True))
        e, f = torch.exp(s - new), torch.exp(m - new)
        num, den, m = num * f + e @ vv, den * f + e.sum(-1, keepdim=True), new
    return num / den
'''),
]
RIGHT = [
("scaled_dot_product_attention", "einsum, scaled query, log_softmax", '''
def attention_weights(q, k, mask=None):
    s = torch.einsum("...qd,...kd->...qk", q / q.size(-1) ** 0.5, k)
    return torch.log_softmax(s, -1).exp()

def scaled_dot_product_attention(q, k, v, mask=None):
    return torch.einsum("...qk,...ke->...qe", attention_weights(q, k), v)
'''),
("scaled_dot_product_attention", "F.scaled_dot_product_attention, no mask handling", '''
scaled_dot_product_attention = lambda q, k, v, mask=None: F.scaled_dot_product_attention(q, k, v)
'''),
("multi_head", "a loop over heads that slices columns", '''
def multi_head(x, w_qkv, w_out, heads):
    dim = x.shape[2]
    d = dim // heads
    result = torch.zeros_like(x)
    for h in range(heads):
        c = slice(h * d, (h + 1) * d)
        q, k, v = x @ w_qkv[:, :dim][:, c], x @ w_qkv[:, dim : 2 * dim][:, c], x @ w_qkv[:, 2 * dim :][:, c]
        a = torch.softmax(torch.bmm(q, k.transpose(1, 2)) / math.sqrt(d), dim=2)
        result = result + a @ v @ w_out[c]
    return result
'''),
("masked_softmax", "softmax with -inf and nan_to_num", '''
def masked_softmax(scores, mask):
    filled = torch.where(mask, scores, -torch.inf)
    return torch.nan_to_num(F.softmax(filled, dim=-1), nan=0.0)
'''),
("antisymmetric_share", "from traces, without the symmetric matrices", '''
def antisymmetric_share(w_q, w_k):
    qq, kk, qk = w_q.T @ w_q, w_k.T @ w_k, w_k.T @ w_q
    norm = torch.trace(qq @ kk)
    return float((norm - torch.trace(qk @ qk)) / (2 * norm))
'''),
("chunked_attention", "two passes over the keys: maximum first", '''
def chunked_attention(q, k, v, chunk):
    s = lambda i: q @ k[..., i : i + chunk, :].mT * q.shape[-1] ** -0.5
    starts = range(0, k.shape[-2], chunk)
    top = None
    for i in starts:
        m = s(i).max(-1, keepdim=True).values
        top = m if top is None else torch.maximum(top, m)
    num = den = 0
    for i in starts:
        e = (s(i) - top).exp()
        num, den = num + e @ v[..., i : i + chunk, :], den + e.sum(-1, keepdim=True)
    return num / den
'''),
]
