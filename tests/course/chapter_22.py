from itertools import product

import torch

from minivit.hybrid import alternate as alternate
from minivit.parts import local_mask, window_mask

STAGES = ["".join(bits) for bits in product("01", repeat=3)]


def neighbourhood(rows, columns, k):
    return local_mask((rows, columns), k)


def shifted_windows(rows, columns, window, shift):
    return window_mask((rows, columns), window, shift=shift)


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
    near = local_mask((rows, columns), 3)
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
