"""Mutants of chapter 03's official solutions that pass their checks, and why they are right too.

The key is "old line -> new line", as course.check.mutants writes it.
"""

WHOLE = "whole numbers divided have the default dtype, which in a check is that of the input"
FROM_ZERO = "a slice without a start begins at 0"

EQUIVALENT = {
    "add_positions": {
        "nothing = table.new_zeros(1, table.shape[1]) -> "
        "nothing = tokens.new_zeros(1, table.shape[1])": "both have the same dtype and device",
    },
    "move_by": {
        "pairs = torch.arange(0, dim, 2, dtype=p.dtype) -> pairs = torch.arange(0, dim, 2)": (
            WHOLE
        ),
        "sine, cosine = (p[:, 0::2], p[:, 1::2]) -> sine, cosine = (p[:, ::2], p[:, 1::2])": (
            FROM_ZERO
        ),
    },
    "resample_linear": {},
    "relative_bias": {},
    "rotary_2d": {
        "half = x.shape[-1] // 2 -> half = x.shape[-1] / 2": "d_head is even",
        "rates = 10000 ** (-torch.arange(0, half, 2, dtype=x.dtype) / half) -> "
        "rates = 10000 ** (-torch.arange(0, half, 2) / half)": WHOLE,
        "angles = torch.cat([by_row, by_column], dim=-1) -> "
        "angles = torch.cat([by_row, by_column], dim=1)": "of two axes the last is axis 1",
        "a, b = (x[..., 0::2], x[..., 1::2]) -> a, b = (x[..., ::2], x[..., 1::2])": FROM_ZERO,
    },
}
