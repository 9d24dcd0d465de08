import torch
import torch.nn.functional as F


def rope_2d(x, rows, columns, rates):
    angles = torch.cat([torch.outer(rows, rates), torch.outer(columns, rates)], 1)
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


def rms_norm(x, scale, eps):
    return F.rms_norm(x, scale.shape, scale, eps)


def normed_attention(q, k, q_scale, k_scale):
    d = q.shape[-1]
    q, k = F.rms_norm(q, (d,), q_scale, 1e-6), F.rms_norm(k, (d,), k_scale, 1e-6)
    return F.softmax(torch.einsum("hid,hjd->hij", q, k) * d**-0.5, -1)


def swiglu(x, gate, value, out):
    return F.linear(F.silu(F.linear(x, gate)) * F.linear(x, value), out)


def parallel_step(x, norm, attention, mlp, scale):
    read = norm(x)
    return torch.addcmul(torch.addcmul(x, scale, attention(read)), scale, mlp(read))


def key_for(query, rows, columns, rates):
    angles = torch.cat([rows * rates, columns * rates])
    pairs = torch.view_as_complex(query.reshape(-1, 2).contiguous())
    return torch.view_as_real(pairs * torch.exp(-1j * angles)).flatten()


EQUIVALENT = [
    ("normed_attention", "all have one width", "shape = q_scale.shape -> shape = k_scale.shape", "k.mT / q.shape[-1] -> k.mT / k_scale.shape[-1] | k.mT / k.shape[-1] | k.mT / q_scale.shape[-1]"),
    ("normed_attention", "too little to matter", "q_scale, eps=1e-06) -> q_scale)", "k_scale, eps=1e-06) -> k_scale)"),
]  # fmt: skip
