"""Mutants of chapter 09's official solutions that pass their checks, and why they are right too.

The key is "old line -> new line", as course.check.mutants writes it.
"""

PLACES = "places = torch.stack([place // columns, place % columns], dim={}).to(weights.dtype)"

EQUIVALENT = {
    "effective_keys": {
        "return entropy.exp().mean(-1) -> return entropy.exp().mean(1)": "of two axes, as below",
    },
    "mean_offset": {
        f"{PLACES.format(-1)} -> {PLACES.format(1)}": "of two axes the last is axis 1",
    },
    "relevance": {
        "R = torch.eye(weights.shape[-1]) -> R = torch.eye(weights.shape[-2])": (
            "there are as many queries as keys"
        ),
        "R = torch.eye(weights.shape[-1]) -> R = torch.eye(gradients.shape[-1])": (
            "gradients have the shape of weights"
        ),
    },
    "integrated_gradients": {
        "total = torch.zeros_like(images) -> total = torch.zeros_like(baseline)": (
            "the first gradient makes it a batch"
        ),
    },
}
