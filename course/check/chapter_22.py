"""Chapter 22: who may attend to whom, and AlterNet's two rules."""

from itertools import product
from operator import ge, gt, lt

import torch
from torch import Tensor

from course.check.attempt import Attempt, Draw, Outcomes
from course.check.exercise import exercise


def grid(rows: int, columns: int) -> tuple[Tensor, Tensor]:
    """Row and column of every patch, in reading order."""
    places = torch.arange(rows * columns)
    return places // columns, places % columns


def apart(numbers: Tensor) -> Tensor:
    """How much larger the column's number is than the row's, for all pairs."""
    return numbers - numbers[:, None]


def same(*labels: Tensor) -> Tensor:
    """1 where two patches have the same labels, else 0."""
    return torch.stack([apart(label) == 0 for label in labels]).all(0).double()


@exercise("n, again")
def neighbourhood(attempt: Attempt) -> None:
    """rows, columns, k -> bool [n, n]."""
    for rows, columns, k in ((4, 6, 3), (6, 5, 5)):
        n, half = rows * columns, k // 2
        i = torch.arange(n)
        to_row, to_column = map(apart, grid(rows, columns))
        down, across = to_row.abs(), to_column.abs()
        turned = torch.maximum(*(apart(numbers).abs() for numbers in grid(columns, rows)))
        torus = [torch.minimum(d, n - d) for d, n in ((down, rows), (across, columns))]
        steps = torch.arange(-half, half + 1)
        runs_over = torch.isin(apart(i), steps[:, None] * columns + steps).double()
        upper_left = (to_row >= 0) & (to_row < k) & (to_column >= 0) & (to_column < k)

        def near(distance: Tensor, radius: float = half) -> Tensor:
            return (distance <= radius).double()

        square = torch.maximum(down, across)
        expected = near(square)
        outcomes = {
            expected: f"For {rows} x {columns} patches and k = {k} the result is wrong (True "
            "counts as 1).",
            1 - expected: "True and False are exchanged: True says that a patch may attend.",
            near(torch.maximum(*torus)): "The neighbourhood wraps round to the other edge. It ends "
            "with the image.",
            runs_over: "Beyond the end of a row the neighbourhood continues in another one. It "
            "ends with the image.",
            near(down + across): "The corners of the k x k patches are missing. A corner is k // 2 "
            "patches down and k // 2 across: steps down and across are not added.",
            near(square, k): "k is used as a radius. It is the side: k // 2 patches lie on each "
            "side of i.",
            near(square, half - 1): "Patches k // 2 away belong to the neighbourhood too.",
            near(square, k - 1): "The neighbourhood reaches k - 1 patches far. It is k patches "
            "wide in all: k // 2 lie on each side of i.",
            upper_left.double(): "Patch i is at the upper left of its neighbourhood. It is in the "
            "middle.",
            near(apart(i).abs()): "This is a band in reading order, of patches whose indices are "
            "near. Compare rows and columns.",
            near(down): "Only the rows are compared. Compare the columns too.",
            near(across): "Only the columns are compared. Compare the rows too.",
            near(torch.minimum(down, across)): "Here it is enough to be near in row or in column. "
            "Both are needed.",
            near(turned): "Patch i is at row i // columns, column i % columns: here the number of "
            "rows takes the place of that of columns.",
            expected - torch.eye(n): "A patch does not attend to itself here. It is in its own "
            "neighbourhood.",
        }
        attempt.expect_close(attempt(rows, columns, k, dtype=torch.bool).to(expected), outcomes)


@exercise("n, again")
def shifted_windows(attempt: Attempt) -> None:
    """rows, columns, window, shift -> bool [n, n]."""
    rows, columns, window = 5, 7, 3
    n = rows * columns
    i = torch.arange(n)
    row, column = grid(rows, columns)

    def expect(expected: Tensor, shift: int, otherwise: str, mistakes: Outcomes) -> None:
        result = attempt(rows, columns, window, shift, dtype=torch.bool)
        outcomes = {
            expected: f"For 5 x 7 patches and windows of 3 x 3, {otherwise}, the result is wrong "
            "(True counts as 1)."
        }
        attempt.expect_close(result.to(expected), outcomes | mistakes)

    tiled = same(row // 3, column // 3)
    one_of_two = torch.maximum(same(row // 3), same(column // 3))
    turned = grid(columns, rows)
    mistakes = {
        1 - tiled: "True and False are exchanged: True says that a patch may attend.",
        same(row // 3): "Windows are as wide as the image. Compare the columns too.",
        same(column // 3): "Windows are as high as the image. Compare the rows too.",
        one_of_two: "One of row and column is enough here. Of two patches in a window both agree.",
        same(turned[0] // 3, turned[1] // 3): "Patch i is at row i // columns, column i % columns: "
        "here the number of rows takes the place of that of columns.",
        same(i // 9): "The windows are stretches of reading order. They are squares of patches.",
        same(row * 3 // 5, column * 3 // 7): "Here window is the number of windows along a side. "
        "It is the side of one.",
        tiled - torch.eye(n): "A patch does not attend to itself here. It is in its own window.",
    }
    expect(tiled, 0, "without a shift", mistakes)
    for s in (1, 2):
        whole = ((row >= s) & (column >= s)).double()  # not before the first whole windows
        expected = same((row - s) // 3, (column - s) // 3)
        inside = expected * whole * whole[:, None]
        moved = (i - s * columns - s) % n
        mistakes = {
            tiled: "The windows are not shifted.",
            same((row + s) // 3, (column + s) // 3): "The windows are shifted up and to the left. "
            "Whole ones begin down and to the right of the corner.",
            same((row - s) % 5 // 3, (column - s) % 7 // 3): "The windows wrap round to the "
            "opposite edge, as with torch.roll. They end with the image.",
            same((row + s) % 5 // 3, (column + s) % 7 // 3): "The windows are rolled up and to the "
            "left, over the edge. They begin down and to the right of the corner, and end with the "
            "image.",
            same(row[moved] // 3, column[moved] // 3): "The shift is one of reading order, from "
            "the end of a row into the next. Shift rows and columns.",
            same((row - s) // 3, column // 3): "The windows are only shifted down. Shift them to "
            "the right too.",
            same(row // 3, (column - s) // 3): "The windows are only shifted to the right. Shift "
            "them down too.",
            same((row - s).clamp(0) // 3, (column - s).clamp(0) // 3): "The patches before the "
            "first whole window have joined it. They make smaller windows of their own: rounded "
            "down, -1 / 3 is -1.",
            inside: "A patch before the first whole window attends to none. The windows there are "
            "smaller.",
            torch.maximum(inside, torch.eye(n)): "A patch before the first whole window attends "
            "only to itself. The windows there are smaller.",
        }
        expect(expected, s, f"shifted by {s}", mistakes)
    row, column = grid(4, 9)
    expected = same((row - 3) // 5, (column - 3) // 5)
    message = "For 4 x 9 patches and windows of 5 x 5, shifted by 3, the result is wrong."
    attempt.expect_close(attempt(4, 9, 5, 3, dtype=torch.bool).to(expected), {expected: message})


@exercise()
def alternate(attempt: Attempt) -> None:
    """blocks and attention, numbers for each stage -> a string for each stage."""

    def stages(end: str = "ca", taken: int = 2, rest: str = "c", order: int = 1) -> tuple[str, ...]:
        """Of each stage all blocks but some for each attention, and an end for each."""
        both = zip(blocks, attention, strict=True)
        return tuple("".join([rest * (n - taken * k), end * k][::order]) for n, k in both)

    for blocks, attention in (((3, 6), (1, 2)), ((4, 4), (0, 2)), ((2, 7, 1, 8), (1, 2, 0, 3))):
        outcomes = {
            f"For blocks = {blocks} and attention = {attention} the stages are wrong.": stages(),
            "All attention of a stage is grouped at its end. Every other block stays a "
            "convolution.": stages("a", taken=1),
            "A stage has too many blocks. Each pair of a c and an a takes two of its n.": stages(
                taken=1
            ),
            "A stage has too many blocks. Attention replaces convolutions: none is added.": stages(
                taken=0
            ),
            "The last block of a stage is a convolution. The rule begins with the last.": stages(
                "ac"
            ),
            "Attention begins at the start of a stage. It belongs at the end.": stages(order=-1),
            "The stages are written from their ends: the last letter is the last block.": stages(
                "ac", order=-1
            ),
            "Letters are exchanged: c is a convolution, a is attention.": stages("ac", rest="a"),
            "The stages are in the opposite order.": stages()[::-1],
        }
        attempt.expect_equal(attempt.plain(blocks, attention, kind=tuple), outcomes)


@exercise()
def follow_rules(attempt: Attempt) -> None:
    """score, a function of a text -> a text."""
    letters = tuple("".join(bits) for bits in product("01", repeat=3))
    tables = [
        (61, 63, 64, 62, 60, 65, 67, 66),
        (63, 60, 64, 65, 61, 67, 62, 66),
        (70, 70, 72, 71, 69, 68, 72, 71),
        (70, 71, 69, 72, 74, 65, 66, 73),
        (75, 71, 72, 76, 73, 77, 78, 79),
    ]

    def kept(order=(2, 1, 0), better=gt, first=False, alone=False, stop=False, last=False, **other):
        """What the rules lead to, or a faulty way to follow them; with other scores."""
        scores = table | other
        found, best, tried = set[int](), scores["000"], "000"
        for i in order:
            ends = {i} if alone else found | {i}
            tried = "".join("01"[j in ends] for j in range(3))
            if better(scores[tried], scores["000"] if first or alone else best):
                found, best = found | {i}, scores[tried]
            elif stop:
                break
        return tried if last else "".join("01"[j in found] for j in range(3))

    for accuracies in tables:
        table = {stages: float(a) for stages, a in zip(letters, accuracies, strict=True)}
        asked: list[object] = []

        def score(stages: str, table=table, asked=asked) -> float:
            asked.append(stages)
            if stages not in letters:
                raise ValueError(f"score takes three letters, each 0 or 1: got {stages!r}")
            return table[stages]

        listed = ", ".join(f"{stages}: {a}" for stages, a in table.items())
        best = max(table, key=table.__getitem__)
        outcomes = {
            f"With the accuracies {listed} the result is wrong.": kept(),
            "This is the best of all eight. The rules look at four of them, and may miss it.": best,
            "The stages are tried from the first to the last. Begin with the last.": kept(
                order=(0, 1, 2)
            ),
            'All are compared with "000". Compare with the best so far.': kept(first=True),
            "Each stage is tried alone. What was kept before stays while the next is tried.": kept(
                alone=True
            ),
            "Attention that is as good as none is kept. Keep it if the score is strictly "
            "higher.": kept(better=ge),
            "What lowers the score is kept.": kept(better=lt),
            "A stage where attention does not help ends the search. Go on with the next.": kept(
                stop=True
            ),
            "This is what was tried last. Return the best.": kept(last=True),
            'The score of "000" is not the one to begin with: attention at the end of the last '
            "stage is always kept.": kept(**{"000": 0.0}),
        }
        attempt.expect_equal(attempt.plain(score, kind=str), outcomes)
        attempt.expect(
            len(set(asked)) <= 4,
            f"score was asked about {len(set(asked))} strings. A network is trained for each: four "
            "are enough.",
        )
        attempt.expect(
            len(asked) <= 4,
            f"score was asked {len(asked)} times, and a network is trained each time. Keep the "
            "score of the best so far: four times are enough.",
        )


@exercise("batch, tokens, dim", seed=7)
def pooling(attempt: Attempt, normal: Draw) -> None:
    """x [batch, rows * columns, dim], rows, columns -> as x: the mean around, less the token."""
    batch, rows, columns, dim = 2, 3, 5, 4
    x = normal(batch, rows * columns, dim)

    def mixed(less: float = 1, inside: bool = True, shape=(rows, columns), own: bool = True):
        grid, result = x.unflatten(1, shape), torch.zeros_like(x).unflatten(1, shape)
        for r, c in product(*map(range, shape)):
            around = grid[:, max(r - 1, 0) : r + 2, max(c - 1, 0) : c + 2]
            total, number = around.sum((1, 2)), around[0, ..., 0].numel() if inside else 9
            if not own:
                total, number = total - grid[:, r, c], number - 1
            result[:, r, c] = total / number - less * grid[:, r, c]
        return result.flatten(1, 2)

    outcomes = {
        mixed(): f"On a grid of {rows} × {columns} the result is wrong.",
        mixed(less=0): "The token itself is not taken off. The residual connection adds it anyway.",
        mixed(inside=False): "At the border you divide by 9, as if zeros lay around the image. "
        "Count the neighbours that there are.",
        mixed(inside=False, less=0): "You divide by 9 at the border, and do not take off the "
        "token.",
        mixed(own=False): "The token is left out of the mean. It is one of its own nine.",
        mixed(shape=(columns, rows)): f"You read the grid as {columns} rows of {rows}.",
        -mixed(): "The sign is reversed: the mean less the token.",
        x.mean(1, keepdim=True) - x: "This is the mean of all tokens. Take the nine around each.",
    }
    attempt.expect_close(attempt(x, rows, columns), outcomes)
