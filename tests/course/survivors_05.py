"""Mutants of chapter 05's official solutions that pass their checks, and why they are right too.

The key is "old line -> new line", as course.check.mutants writes it.
"""

EQUIVALENT = {
    "distance_from_alike": {
        "away = x - x.mean(1, keepdim=True) -> away = x.mean(1, keepdim=True) - x": (
            "a norm does not see the sign"
        ),
    },
    "spatial_gate": {},
    "convolution_table": {},
    "resized_mixing": {
        "bias = resampled(down_bias[None])[0] -> bias = resampled(down_bias[None])[-1]": (
            "there is one row"
        ),
    },
}
