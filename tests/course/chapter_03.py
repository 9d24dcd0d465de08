"""Chapter 3: answers that learners might give, all by hand: a class hands them in to the grader."""

import torch


def without_class_token(tokens, table):
    return torch.cat([tokens[:, :1], tokens[:, 1:] + table], 1)


def by_blocks(p, steps):
    """One matrix for all rows, made of blocks of two."""
    dim = p.shape[1]
    blocks = []
    for i in range(dim // 2):
        angle = torch.tensor(steps * 10000 ** (-2 * i / dim))
        c, s = angle.cos(), angle.sin()
        blocks.append(torch.stack([torch.stack([c, -s]), torch.stack([s, c])]))
    return p @ torch.block_diag(*blocks)


def by_two_matrices(table, old_grid, new_grid):
    """Weights of the nearest two along each axis, as one matrix an axis."""

    def weights(new, old):
        u = torch.linspace(0, old - 1, new)
        return (1 - (u[:, None] - torch.arange(old)).abs()).clamp(min=0)

    rows, columns = (weights(n, m) for n, m in zip(new_grid, old_grid, strict=True))
    return torch.cat([table[:1], torch.kron(rows, columns) @ table[1:]])


def one_query_at_a_time(table, grid):
    """The term of a query is a window of the table, cut where the query stands."""
    rows, columns = grid
    windows = [
        table[rows - 1 - r : 2 * rows - 1 - r, columns - 1 - c : 2 * columns - 1 - c].flatten()
        for r in range(rows)
        for c in range(columns)
    ]
    return torch.stack(windows)


def by_complex_numbers(x, grid):
    rows, columns = torch.meshgrid(*(torch.arange(n) for n in grid), indexing="ij")
    half = x.shape[-1] // 2
    rates = torch.logspace(0, -4, half // 2 + 1)[:-1]  # from 1 down, 1/10000 left out
    angles = torch.cat([rows.reshape(-1, 1) * rates, columns.reshape(-1, 1) * rates], -1)
    hands = torch.complex(angles.cos(), angles.sin())
    pairs = torch.complex(x[..., 0::2], x[..., 1::2]) * hands
    return torch.view_as_real(pairs).flatten(-2)


# Under two names: where a wrong answer that calls one is handed in, it takes the exercise's.
add_positions = without_class_token
move_by = by_blocks
rotary_2d = by_complex_numbers
resample_linear = by_two_matrices
relative_bias = one_query_at_a_time

WRONG = [
    ("add_positions", "Leave the class token out", lambda x, p: x + p),
    ("add_positions", "first row of the table goes", lambda x, p: torch.cat([x[:, :-1] + p, x[:, -1:]], 1)),
    ("add_positions", "class token has changed", lambda x, p: x + torch.cat([p.mean(0, keepdim=True), p])),
    ("add_positions", "is missing", lambda x, p: x[:, 1:] + p),
    ("add_positions", "put at the end", lambda x, p: torch.cat([x[:, 1:] + p, x[:, :1]], 1)),
    ("add_positions", "come back unchanged", lambda x, p: x.clone()),
    ("add_positions", "is subtracted", lambda x, p: without_class_token(x, -p)),
    ("move_by", "move backwards", lambda p, steps: by_blocks(p, -steps)),
    # The sine that cosines lose is added.
    ("move_by", "no longer sum to one", lambda p, steps: torch.stack([by_blocks(p, steps)[:, 0::2], by_blocks(p, -steps)[:, 1::2]], -1).flatten(1)),
    ("move_by", "shifted in the tensor", lambda p, steps: p.roll(-int(steps), 0)),
    ("move_by", "steps = 1.5", lambda p, steps: by_blocks(p, int(steps))),
    ("resample_linear", "class token's row is not kept", lambda table, old, new: by_two_matrices(table, old, new).roll(-1, 0)),
    ("resample_linear", "has shape [13, 2]", lambda table, old, new: table.clone()),
    ("relative_bias", "wrong sign", lambda table, grid: one_query_at_a_time(table.flip(0, 1), grid)),
    ("relative_bias", "middle of", lambda table, grid: one_query_at_a_time(table.flip(0, 1), grid) * 2),
    ("rotary_2d", "should come back unchanged", lambda x, grid: -by_complex_numbers(x, grid)),
]  # fmt: skip

EQUIVALENT = [
    ("add_positions", "both have the same dtype and device", "table.new_zeros -> tokens.new_zeros"),
    ("move_by", "whole numbers divided have a check's dtype", "2, dtype=p.dtype -> 2"),
    ("move_by", "a slice without a start begins at 0", "0::2 -> ::2"),
    ("rotary_2d", "d_head is even", "// 2 -> / 2"),
    ("rotary_2d", "whole numbers divided have a check's dtype", "2, dtype=x.dtype -> 2"),
    ("rotary_2d", "of two axes the last is axis 1", "by_column], dim=-1 -> by_column], dim=1"),
    ("rotary_2d", "a slice without a start begins at 0", "0::2 -> ::2"),
]  # fmt: skip
