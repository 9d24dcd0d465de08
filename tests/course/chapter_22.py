"""Chapter 22: answers that learners might give."""

from functools import partial
from itertools import product

import torch
import torch.nn.functional as F

STAGES = ["".join(bits) for bits in product("01", repeat=3)]


def places(rows, columns, turned=False):
    """Row and column of every patch."""
    n = torch.arange(rows * columns)
    return (n // rows, n % rows) if turned else (n // columns, n % columns)


def by_unfolding(rows, columns, k):
    """A picture with one patch alight, and all k x k pieces of it."""
    lit = torch.eye(rows * columns).view(-1, 1, rows, columns)
    return (F.unfold(lit, k, padding=k // 2) > 0).any(1)


def faulty_neighbourhood(rows, columns, k, within=None, turned=False):
    row, column = places(rows, columns, turned)
    return within(row - row[:, None], column - column[:, None], k)


def square(down, across, k):
    return torch.maximum(down.abs(), across.abs()) <= k // 2


def round_torus(rows, columns, k):
    lit = torch.eye(rows * columns).view(-1, 1, rows, columns)
    around = F.pad(lit, [k // 2] * 4, mode="circular")
    return F.max_pool2d(around, k, 1).flatten(1) > 0


def by_offsets(rows, columns, k):
    n = rows * columns
    mask = torch.zeros(n, n, dtype=torch.bool)
    for i, down, across in product(range(n), *[range(-(k // 2), k // 2 + 1)] * 2):
        if 0 <= i + down * columns + across < n:
            mask[i, i + down * columns + across] = True
    return mask


def by_edges(rows, columns, window, shift):
    """One more window from each edge on."""
    edges = range(shift if shift else window, max(rows, columns), window)
    number = torch.zeros(max(rows, columns), dtype=torch.long)
    for edge in edges:
        number[edge:] += 1
    labels = number[:rows, None] * 100 + number[:columns]
    return torch.eq(*torch.meshgrid([labels.flatten()] * 2, indexing="ij"))


def windows(rows, columns, window, shift, label=None, turned=False, both=torch.mul):
    """The mask of windows that `label` numbers along each side."""
    down, across = (
        label(at, length, window, shift)
        for at, length in zip(places(rows, columns, turned), (rows, columns), strict=True)
    )
    return both(down[:, None] == down, across[:, None] == across)


def shifted(at, length, window, shift):
    return (at - shift) // window


def one_side(rows, columns, window, shift, moves=(1, 1)):
    row, column = places(rows, columns)
    down, across = (row - moves[0] * shift) // window, (column - moves[1] * shift) // window
    return (down[:, None] == down) & (across[:, None] == across)


def numbered(rows, columns, window, shift, count):
    row, column = ((at - shift) // window for at in places(rows, columns))
    label = row * count(columns, window) + column
    return label[:, None] == label


def rolled(rows, columns, window, shift, flat=False):
    row, column = places(rows, columns)
    labels = row // window * 100 + column // window
    if flat:
        labels = labels.roll(shift * columns + shift)
    else:
        labels = labels.view(rows, columns).roll((shift, shift), (0, 1)).flatten()
    return labels[:, None] == labels


def whole_alone(rows, columns, window, shift):
    row, column = places(rows, columns)
    whole = (row < rows - rows % window) & (column < columns - columns % window)
    return by_edges(rows, columns, window, shift) & whole & whole[:, None]


def before_alone(rows, columns, window, shift, itself=False):
    row, column = places(rows, columns)
    inside = (row >= shift) & (column >= shift)
    mask = by_edges(rows, columns, window, shift) & inside & inside[:, None]
    return mask | torch.eye(len(mask), dtype=torch.bool) if itself else mask


def head_by_head(x, scores, values, out):
    width = x.shape[-1] // len(scores)
    parts = zip(scores, (x @ values).split(width, -1), strict=True)
    return torch.cat([torch.softmax(s, 1) @ v for s, v in parts], -1) @ out


def faulty_mixing(x, scores, values, out, weigh=lambda s: s.softmax(-1), cut="(h d)", back=(1, 2)):
    v = x @ values
    if cut == "(h d)":
        v = v.unflatten(-1, (len(scores), -1)).transpose(1, 2)  # [batch, heads, n, d]
    else:
        v = v.unflatten(-1, (-1, len(scores))).movedim(-1, 1)
    mixed = weigh(scores) @ v
    if cut != "(h d)":
        return mixed.movedim(1, -1).flatten(2) @ out
    return mixed.transpose(*back).reshape(x.shape) @ out


def by_positions(blocks, attention):
    return tuple(
        "".join("a" if i % 2 == 0 and i < 2 * k else "c" for i in reversed(range(n)))
        for n, k in zip(blocks, attention, strict=True)
    )


def faulty_alternate(blocks, attention, build):
    return tuple(build(n, k) for n, k in zip(blocks, attention, strict=True))


def from_the_end(blocks, attention):
    pairs, stages, start = sum(attention), [], 0
    letters = "c" * (sum(blocks) - 2 * pairs) + "ca" * pairs
    for n in blocks:
        stages.append(letters[start : start + n])
        start += n
    return tuple(stages)


def by_recursion(score, kept="000", known=None, i=2):
    known = score(kept) if known is None else known
    if i < 0:
        return kept
    tried = kept[:i] + "1" + kept[i + 1 :]
    new = score(tried)
    return by_recursion(score, *((tried, new) if new > known else (kept, known)), i - 1)


def faulty_rules(score, order=(2, 1, 0), keep=lambda new, best: new > best, first=None, **how):
    kept, tried = ["0"] * 3, ["0"] * 3
    best = begin = score("000") if first is None else first
    for i in order:
        tried = ["0"] * 3 if how.get("alone") else list(kept)
        tried[i] = "1"
        new = score("".join(tried))
        if keep(new, begin if how.get("alone") or how.get("begin") else best):
            kept[i], best = "1", new
        elif how.get("stop"):
            break
    return "".join(tried if how.get("last") else kept)


def asking_again(score):
    kept = "000"
    for i in (2, 1, 0):
        tried = kept[:i] + "1" + kept[i + 1 :]
        kept = tried if score(tried) > score(kept) else kept
    return kept


def looking_at_all(score):
    known = {stages: score(stages) for stages in STAGES}
    return by_recursion(known.get)


CORRECT = {
    "neighbourhood": by_unfolding,
    "shifted_windows": by_edges,
    "static_mixing": head_by_head,
    "alternate": by_positions,
    "follow_rules": by_recursion,
}

NEAR = {
    "corners of the k x k patches": lambda down, across, k: down.abs() + across.abs() <= k // 2,
    "circle of diameter": lambda down, across, k: down**2 + across**2 <= (k / 2) ** 2,
    "as a radius": lambda down, across, k: square(down, across, 2 * k + 1),
    "k - 1 patches far": lambda down, across, k: square(down, across, 2 * k - 1),
    "too small by a patch": lambda down, across, k: square(down, across, k - 2),
    "upper left of its": lambda down, across, k: (
        (down >= 0) & (down < k) & (across >= 0) & (across < k)
    ),
    "Only the rows": lambda down, across, k: down.abs() <= k // 2,
    "Only the columns": lambda down, across, k: across.abs() <= k // 2,
    "enough to be near in row": lambda down, across, k: (
        (down.abs() <= k // 2) | (across.abs() <= k // 2)
    ),
    "attend to itself": lambda down, across, k: (
        square(down, across, k) & ((down != 0) | (across != 0))
    ),
    "are exchanged": lambda down, across, k: ~square(down, across, k),
}

WRONG = {
    "neighbourhood": [
        *((text, partial(faulty_neighbourhood, within=within)) for text, within in NEAR.items()),
        ("neighbourhood wraps round", round_torus),
        ("in another one", by_offsets),
        (
            "corners of the k x k patches",
            lambda rows, columns, k: faulty_neighbourhood(
                rows, columns, k, lambda down, across, k: down**2 + across**2 <= (k // 2) ** 2
            ),
        ),
        ("number of rows takes", partial(faulty_neighbourhood, within=square, turned=True)),
        (
            "band in reading order",
            lambda rows, columns, k: (
                ((i := torch.arange(rows * columns)) - i[:, None]).abs() <= k // 2
            ),
        ),
        ("dtype torch.float64", lambda *sizes: by_unfolding(*sizes).double()),
    ],
    "shifted_windows": [
        ("are exchanged", lambda *sizes: ~by_edges(*sizes)),
        (
            "Compare the columns too",
            partial(windows, label=shifted, both=lambda down, across: down),
        ),
        (
            "Compare the rows too",
            partial(windows, label=shifted, both=lambda down, across: across),
        ),
        ("One of row and column", partial(windows, label=shifted, both=torch.logical_or)),
        ("number of rows takes", partial(windows, label=shifted, turned=True)),
        (
            "stretches of reading order",
            lambda rows, columns, window, shift: (
                (i := torch.arange(rows * columns) // window**2) == i[:, None]
            ),
        ),
        (
            "number of windows along a side",
            partial(windows, label=lambda at, length, window, shift: at * window // length),
        ),
        (
            "same number. In a row",
            partial(numbered, count=lambda columns, window: columns // window),
        ),
        ("on a diagonal", partial(numbered, count=lambda columns, window: 1)),
        (
            "neighbourhood of its own",
            lambda rows, columns, window, shift: faulty_neighbourhood(
                rows, columns, window, square
            ),
        ),
        ("smaller windows at the edges", whole_alone),
        (
            "attend to itself here",
            lambda *sizes: (mask := by_edges(*sizes)) & ~torch.eye(len(mask), dtype=torch.bool),
        ),
        ("are not shifted", partial(one_side, moves=(0, 0))),
        ("are shifted up", partial(one_side, moves=(-1, -1))),
        ("only shifted down", partial(one_side, moves=(1, 0))),
        ("only shifted to the right", partial(one_side, moves=(0, 1))),
        ("as with torch.roll", rolled),
        (
            "rolled up and to the left",
            lambda rows, columns, window, shift: rolled(rows, columns, window, -shift),
        ),
        ("end of a row into the next", partial(rolled, flat=True)),
        (
            "have joined it",
            partial(
                windows, label=lambda at, _, window, shift: ((at - shift) / window).trunc().long()
            ),
        ),
        (
            "have joined it",
            partial(windows, label=lambda at, _, window, shift: (at - shift).clamp(0) // window),
        ),
        ("attends to none. The windows", before_alone),
        ("only to itself", partial(before_alone, itself=True)),
    ],
    "static_mixing": [
        ("Take their softmax", partial(faulty_mixing, weigh=lambda s: s)),
        ("tokens that attend", partial(faulty_mixing, weigh=lambda s: s.softmax(1))),
        ("over the heads", partial(faulty_mixing, weigh=lambda s: s.softmax(0))),
        (
            "all scores of a head",
            partial(faulty_mixing, weigh=lambda s: s.flatten(1).softmax(1).view_as(s)),
        ),
        ("divided by a root", partial(faulty_mixing, weigh=lambda s: (s / 2**0.5).softmax(-1))),
        ("weights are transposed", partial(faulty_mixing, weigh=lambda s: s.softmax(-1).mT)),
        ("every third feature", partial(faulty_mixing, cut="(d h)")),
        ("along the tokens", partial(faulty_mixing, back=(0, 0))),
        (
            "weights of the first",
            partial(faulty_mixing, weigh=lambda s: s[:1].softmax(-1).expand_as(s)),
        ),
        ("averaged", partial(faulty_mixing, weigh=lambda s: s.softmax(-1).mean(0))),
        ("weights are not used", lambda x, scores, values, out: x @ values @ out),
        (
            "values are not used",
            lambda x, scores, values, out: head_by_head(x, scores, torch.eye(len(out)), out),
        ),
        (
            "of the values is transposed",
            lambda x, scores, values, out: head_by_head(x, scores, values.T, out),
        ),
        (
            "They come before",
            lambda x, scores, values, out: head_by_head(
                x, scores, torch.eye(len(out)), values @ out
            ),
        ),
        (
            "out is not used",
            lambda x, scores, values, out: head_by_head(x, scores, values, torch.eye(len(out))),
        ),
        (
            "out is transposed",
            lambda x, scores, values, out: head_by_head(x, scores, values, out.T),
        ),
        (
            "It comes after",
            lambda x, scores, values, out: head_by_head(
                x, scores, values @ out, torch.eye(len(out))
            ),
        ),
    ],
    "alternate": [
        (text, partial(faulty_alternate, build=build))
        for text, build in {
            "grouped at its end": lambda n, k: "c" * (n - k) + "a" * k,
            "takes two of its n": lambda n, k: "c" * (n - k) + "ca" * k,
            "none is added": lambda n, k: "c" * n + "ca" * k,
            "block of a stage is a convolution": lambda n, k: "c" * (n - 2 * k) + "ac" * k,
            "at the start of a stage": lambda n, k: "ca" * k + "c" * (n - 2 * k),
            "written from their ends": lambda n, k: "ac" * k + "c" * (n - 2 * k),
            "Letters are exchanged": lambda n, k: "a" * (n - 2 * k) + "ac" * k,
        }.items()
    ]
    + [
        ("end of the network", from_the_end),
        ("opposite order", lambda *numbers: by_positions(*numbers)[::-1]),
        ("of type list, expected tuple", lambda *numbers: list(by_positions(*numbers))),
        ("of type str, expected tuple", lambda *numbers: "".join(by_positions(*numbers))),
    ],
    "follow_rules": [
        (
            "best of all eight",
            lambda score: max({s: score(s) for s in STAGES}.items(), key=lambda pair: pair[1])[0],
        ),
        ("from the first to the last", partial(faulty_rules, order=(0, 1, 2))),
        ("compared with", partial(faulty_rules, begin=True)),
        ("tried alone", partial(faulty_rules, alone=True)),
        ("as good as none", partial(faulty_rules, keep=lambda new, best: new >= best)),
        ("What lowers the score", partial(faulty_rules, keep=lambda new, best: new < best)),
        ("ends the search", partial(faulty_rules, stop=True)),
        ("tried last", partial(faulty_rules, last=True)),
        ("one to begin with", partial(faulty_rules, first=0.0)),
        ("about 8 strings", looking_at_all),
        ("was asked 6 times", asking_again),
        ("takes three letters", lambda score: score((0, 0, 1))),
        ("of type tuple, expected str", lambda score: tuple(by_recursion(score))),
    ],
}

TURNED = "a distance is the same in both directions"
ODD = "k is odd, and no whole number lies between k // 2 and k / 2"
SAME = "for truth values the product is 'and'"

EQUIVALENT = {name: {} for name in CORRECT} | {
    "neighbourhood": {
        "down = (row[:, None] - row).abs() -> down = (row - row[:, None]).abs()": TURNED,
        "across = (column[:, None] - column).abs() -> "
        "across = (column - column[:, None]).abs()": TURNED,
        "return torch.maximum(down, across) <= k // 2 -> "
        "return torch.maximum(down, across) <= k / 2": ODD,
    },
    "shifted_windows": {
        "return same_row & (across[:, None] == across) -> "
        "return same_row * (across[:, None] == across)": SAME,
    },
}
