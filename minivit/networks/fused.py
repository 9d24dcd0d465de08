"""Which way of computing attention is the faster: torch's fused kernel, or the formula."""

import torch
from torch import Tensor


def explicit_is_faster(q: Tensor, mask: Tensor | None = None) -> bool:
    """Whether the formula written out is faster than torch's fused kernel, which it equals.

    The fused kernel never stores the weights and is faster in general: a forward pass up to five
    times, with a mask up to ten; forward and backward in float32 from a tie (50 to 145 tokens) to
    three times. Its backward pass in half precision on a CPU is the exception: there the formula
    takes a sixth to a half of the time for 16 to 577 tokens, with a mask for 50 to 101. (Medians,
    interleaved; torch 2.13, one thread of a Xeon with AMX. On a GPU not measured.)

    The fused kernel has no second and no forward-mode derivative on a CPU. If you need them, enter
    ``torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)``.
    """
    half = q.dtype in (torch.bfloat16, torch.float16)
    gradient = torch.is_grad_enabled() and q.requires_grad
    few = q.shape[-2] <= (640 if mask is None else 128)
    return q.device.type == "cpu" and half and gradient and few
