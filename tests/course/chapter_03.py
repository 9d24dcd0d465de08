"""Chapter 3: answers that learners might give, all by hand: a class hands them in to the grader."""

from functools import partial

import torch
import torch.nn.functional as F


def without_class_token(tokens, table):
    return torch.cat([tokens[:, :1], tokens[:, 1:] + table], 1)


def first_picture_only(tokens, table):
    result = tokens.clone()
    result[0, 1:] += table
    return result


def move_by(p, steps):
    """One matrix for all rows, made of blocks of two."""
    dim = p.shape[1]
    blocks = []
    for i in range(dim // 2):
        angle = torch.tensor(steps * 10000 ** (-2 * i / dim))
        c, s = angle.cos(), angle.sin()
        blocks.append(torch.stack([torch.stack([c, -s]), torch.stack([s, c])]))
    return p @ torch.block_diag(*blocks)


def faulty_move(p, steps, sign=1, cosine_sign=1, rate=2, first=False, together=False, swap=False):
    """A move with one step replaced."""
    pairs, dim = torch.arange(p.shape[1] // 2), p.shape[1]
    angles = sign * steps * 10000 ** (-rate * pairs / dim)
    angles = angles[:1].expand(dim // 2) if first else angles
    s, c = p[:, 0::2], p[:, 1::2]
    new = s * angles.cos() + c * angles.sin(), c * angles.cos() - cosine_sign * s * angles.sin()
    new = new[::-1] if swap else new
    return torch.cat(new, 1) if together else torch.stack(new, -1).flatten(1)


def by_two_matrices(table, old_grid, new_grid):
    """Weights of the nearest two along each axis, as one matrix an axis."""

    def weights(new, old):
        u = torch.linspace(0, old - 1, new)
        return (1 - (u[:, None] - torch.arange(old)).abs()).clamp(min=0)

    rows, columns = (weights(n, m) for n, m in zip(new_grid, old_grid, strict=True))
    return torch.cat([table[:1], torch.kron(rows, columns) @ table[1:]])


def faulty_resampling(table, old_grid, new_grid, mode="bilinear", corners=True, shape="right"):
    places, dim = table[1:], table.shape[1]
    picture = {
        "right": lambda: places.T.reshape(dim, *old_grid),
        "straight": lambda: places.reshape(dim, *old_grid),
        "exchanged": lambda: places.T.reshape(dim, *old_grid[::-1]).mT,
    }[shape]()
    how = {} if mode == "nearest" else {"align_corners": corners}
    picture = F.interpolate(picture[None], new_grid, mode=mode, **how)[0]
    return torch.cat([table[:1], picture.flatten(1).T])


def class_token_last(table, old_grid, new_grid):
    return by_two_matrices(table, old_grid, new_grid).roll(-1, 0)


def one_query_at_a_time(table, grid):
    """The term of a query is a window of the table, cut where the query stands."""
    rows, columns = grid
    windows = [
        table[rows - 1 - r : 2 * rows - 1 - r, columns - 1 - c : 2 * columns - 1 - c].flatten()
        for r in range(rows)
        for c in range(columns)
    ]
    return torch.stack(windows)


def faulty_bias(table, grid, shift=1, sign=1, down=False):
    places = torch.arange(grid[0] * grid[1])
    row, column = places // grid[1], places % grid[1]
    if down:
        row, column = places % grid[0], places // grid[0]
    offsets = [sign * (x[None] - x[:, None]) for x in (row, column)]
    return table[offsets[0] + shift * (grid[0] - 1), offsets[1] + shift * (grid[1] - 1)]


def rotary_2d(x, grid):
    rows, columns = torch.meshgrid(*(torch.arange(n) for n in grid), indexing="ij")
    half = x.shape[-1] // 2
    rates = torch.logspace(0, -4, half // 2 + 1)[:-1]  # from 1 down, 1/10000 left out
    angles = torch.cat([rows.reshape(-1, 1) * rates, columns.reshape(-1, 1) * rates], -1)
    hands = torch.complex(angles.cos(), angles.sin())
    pairs = torch.complex(x[..., 0::2], x[..., 1::2]) * hands
    return torch.view_as_real(pairs).flatten(-2)


def nearby(half):
    return half[..., 0::2], half[..., 1::2], lambda a, b: torch.stack([a, b], -1).flatten(-2)


def far_apart(half):
    a, b = half.chunk(2, -1)
    return a, b, lambda a, b: torch.cat([a, b], -1)


def faulty_rotary(
    x, grid, pairs=nearby, sign=1, signs=(-1, 1), base=1e4, width=1, swap=False, down=False, start=0
):
    """Rotary positions with one step replaced."""
    places, h = torch.arange(grid[0] * grid[1]), x.shape[-1] // 2
    row, column = places // grid[1], places % grid[1]
    if down:
        row, column = places % grid[0], places // grid[0]
    if swap:
        row, column = column, row
    halves = []
    for half, place in zip(x.chunk(2, -1), (row, column), strict=True):
        angles = sign * (place[:, None] + start) * base ** (-torch.arange(0, h, 2) / (width * h))
        a, b, join = pairs(half)
        c, s = angles.cos(), angles.sin()
        halves.append(join(a * c + signs[0] * b * s, signs[1] * a * s + b * c))
    return torch.cat(halves, -1)


# Under two names: where a wrong answer that calls one is handed in, it takes the exercise's.
add_positions = without_class_token
resample_linear = by_two_matrices
relative_bias = one_query_at_a_time

WRONG = {
    "add_positions": [
        ("Leave the class token out", lambda x, p: x + p),
        ("first row of the table goes", lambda x, p: torch.cat([x[:, :-1] + p, x[:, -1:]], 1)),
        ("class token has changed", lambda x, p: x + torch.cat([p.mean(0, keepdim=True), p])),
        ("is missing", lambda x, p: x[:, 1:] + p),
        ("put at the end", lambda x, p: torch.cat([x[:, 1:] + p, x[:, :1]], 1)),
        ("come back unchanged", lambda x, p: x.clone()),
        ("Only the first image", first_picture_only),
        ("is subtracted", lambda x, p: without_class_token(x, -p)),
        ("Token 1 + t should", lambda x, p: without_class_token(x, p.flip(0))),
    ],
    "move_by": [
        ("in another order", partial(faulty_move, together=True)),
        ("come back exchanged", partial(faulty_move, swap=True)),
        ("no longer sum to one", partial(faulty_move, cosine_sign=-1)),
        ("move backwards", partial(faulty_move, sign=-1)),
        ("by the angle of the first", partial(faulty_move, first=True)),
        ("The rates are off", partial(faulty_move, rate=1)),
        ("shifted in the tensor", lambda p, steps: p.roll(-int(steps), 0)),
        ("steps = 1.5", lambda p, steps: faulty_move(p, int(steps))),
        ("With dim = 10", lambda p, steps: faulty_move(p, steps) if p.shape[1] == 6 else p.clone()),
    ],
    "resample_linear": [
        ("class token's row is not kept", class_token_last),
        ("corners do not stay", partial(faulty_resampling, corners=False)),
        ("is bicubic", partial(faulty_resampling, mode="bicubic")),
        ("nearest old position", partial(faulty_resampling, mode="nearest")),
        ("Channels and positions", partial(faulty_resampling, shape="straight")),
        ("Rows and columns are exchanged", partial(faulty_resampling, shape="exchanged")),
        ("has shape [13, 2]", lambda table, old, new: table.clone()),
    ],
    "relative_bias": [
        ("wrong sign", partial(faulty_bias, sign=-1)),
        ("as indices as they are", partial(faulty_bias, shift=0)),
        ("counted column by column", partial(faulty_bias, down=True)),
        (
            "middle of the table",
            lambda table, grid: one_query_at_a_time(table.flip(0, 1), grid) * 2,
        ),
    ],
    "rotary_2d": [
        ("should come back unchanged", partial(faulty_rotary, start=1)),
        ("no rotation does that", partial(faulty_rotary, signs=(1, 1))),
        ("first half of d_head should not", partial(faulty_rotary, swap=True)),
        ("turn backwards", partial(faulty_rotary, sign=-1)),
        ("turned as a pair", partial(faulty_rotary, pairs=far_apart)),
        ("equally fast", partial(faulty_rotary, base=1)),
        ("those of the whole d_head", partial(faulty_rotary, width=2)),
        ("counted column by column", partial(faulty_rotary, down=True)),
    ],
}

EQUIVALENT = {
    "add_positions": {"table.new_zeros -> tokens.new_zeros": "both have the same dtype and device"},
    "move_by": {
        "2, dtype=p.dtype -> 2": "whole numbers divided have a check's dtype",
        "0::2 -> ::2": "a slice without a start begins at 0",
    },
    "rotary_2d": {
        "// 2 -> / 2": "d_head is even",
        "2, dtype=x.dtype -> 2": "whole numbers divided have a check's dtype",
        "by_column], dim=-1 -> by_column], dim=1": "of two axes the last is axis 1",
        "0::2 -> ::2": "a slice without a start begins at 0",
    },
}
