from itertools import product

import torch
import torch.nn.functional as F

STAGES = ["".join(bits) for bits in product("01", repeat=3)]


def neighbourhood(rows, columns, k):
    """A picture with one patch alight, and all k x k pieces of it."""
    lit = torch.eye(rows * columns).view(-1, 1, rows, columns)
    return (F.unfold(lit, k, padding=k // 2) > 0).any(1)


def shifted_windows(rows, columns, window, shift):
    """One more window from each edge on."""
    edges = range(shift if shift else window, max(rows, columns), window)
    number = torch.zeros(max(rows, columns), dtype=torch.long)
    for edge in edges:
        number[edge:] += 1
    labels = number[:rows, None] * 100 + number[:columns]
    return torch.eq(*torch.meshgrid([labels.flatten()] * 2, indexing="ij"))


def alternate(blocks, attention):
    return tuple(
        "".join("a" if i % 2 == 0 and i < 2 * k else "c" for i in reversed(range(n)))
        for n, k in zip(blocks, attention, strict=True)
    )


def follow_rules(score, kept="000", known=None, i=2):
    known = score(kept) if known is None else known
    if i < 0:
        return kept
    tried = kept[:i] + "1" + kept[i + 1 :]
    new = score(tried)
    return follow_rules(score, *((tried, new) if new > known else (kept, known)), i - 1)


def asking_again(score):
    kept = "000"
    for i in (2, 1, 0):
        tried = kept[:i] + "1" + kept[i + 1 :]
        kept = tried if score(tried) > score(kept) else kept
    return kept


def pooling(x, rows, columns):
    row, column = torch.arange(rows * columns) // columns, torch.arange(rows * columns) % columns
    near = ((row - row[:, None]).abs() < 2) & ((column - column[:, None]).abs() < 2)
    weights = near.to(x.dtype) / near.sum(1, keepdim=True)
    return (weights - torch.eye(rows * columns)) @ x


WRONG = [
    ("follow_rules", "about 8 strings", lambda score: follow_rules({stages: score(stages) for stages in STAGES}.get)),
    ("follow_rules", "was asked 6 times", asking_again),
    ("follow_rules", "takes three letters", lambda score: score((0, 0, 1))),
]  # fmt: skip

EQUIVALENT = [
    ("neighbourhood", "a distance is the same in both directions", "row[:, None] - row -> row - row[:, None]", "column[:, None] - column -> column - column[:, None]"),
    ("neighbourhood", "k is odd, and no whole number lies between k // 2 and k / 2", "// 2 -> / 2"),
    ("shifted_windows", "for truth values the product is 'and'", "same_row & -> same_row *"),
]  # fmt: skip
