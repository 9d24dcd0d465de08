"""Mutants of chapter 06's official solutions that pass their checks, and why they are right too.

The key is "old line -> new line", as course.check.mutants writes it.
"""

EQUIVALENT = {
    "layers_needed": {},
    "first_and_last": {},
    "merged_kernel": {
        "merged[:, :, 1, 1] += w1.flatten(1) + torch.eye(len(w3)) -> "
        "merged[:, :, 1, 1] += w1.flatten(1) + torch.eye(len(w1))": "both have all channels",
    },
    "circular_by_fourier": {
        "lying = x.new_zeros(*weight.shape[:2], *x.shape[2:]) -> "
        "lying = weight.new_zeros(*weight.shape[:2], *x.shape[2:])": "dtype and device are equal",
        "side = weight.shape[-1] -> side = weight.shape[-2]": "filters are square",
    },
    "convolution_by_attention": {
        "apart = (wanted[:, None] - places).square().sum(-1) -> "
        "apart = (places - wanted[:, None]).square().sum(-1)": "the sign is squared",
        "places = torch.stack([place // columns, place % columns], dim=-1) -> "
        "places = torch.stack([place // columns, place % columns], dim=1)": "of two axes, as below",
        "weights = (-sharpness * apart).softmax(-1) -> "
        "weights = (-sharpness * apart).softmax(1)": "of two axes the last is axis 1",
    },
}
