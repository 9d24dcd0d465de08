"""Mutants of chapter 10's official solutions that pass their checks, and why they are right too.

The key is "old line -> new line", as course.check.mutants writes it.
"""

CENTRED = "x, y = (x - x.mean(0), y - y.mean(0)) -> x, y = ({}, {})"
SIGN = "the sign of a whole side goes out with the squares"
STEP = "the sign of a step goes out with its square"
ROOT = "return (down.square() + right.square()){}.sqrt().mean()"
BOTH = "both = torch.cat([a, b], dim=1)"
MEANS = "u, level = ({}, y.mean(0))"
ERROR = "error = y - level - hat @ (y {} level)"
LEVERAGE = "leverage = hat.diagonal()[:, None] + 1 / len({})"

EQUIVALENT = {
    "feature_cka": {
        CENTRED.format("x - x.mean(0)", "y.mean(0) - y"): SIGN,
        CENTRED.format("x.mean(0) - x", "y - y.mean(0)"): SIGN,
    },
    "place_error": {
        "right = nearest % columns - torch.arange(columns) -> "
        "right = torch.arange(columns) - nearest % columns": STEP,
        "down = nearest // columns - torch.arange(rows)[:, None] -> "
        "down = torch.arange(rows)[:, None] - nearest // columns": STEP,
        f"{ROOT.format('.float()')} -> {ROOT.format('')}": "the root of whole numbers is float too",
    },
    "streamed_cka": {
        "centred = products - torch.outer(total, total) / len(x) -> "
        "centred = torch.outer(total, total) / len(x) - products": SIGN,
        "centred = products - torch.outer(total, total) / len(x) -> "
        "centred = products - torch.outer(total, total) / len(y)": "both sides have equally many rows",
        f"{BOTH}.double() -> {BOTH}": "a check's features are double already",
        "total = total + both.sum(0) -> total = total - both.sum(0)": (
            "the total stands in a product with itself"
        ),
    },
    "left_out": {
        f"{LEVERAGE.format('x')} -> {LEVERAGE.format('y')}": "both sides have equally many rows",
        f"{ERROR.format('-')} -> {ERROR.format('+')}": (
            "the columns of the centred features sum to zero, so a level has no part in the fit"
        ),
        f"{MEANS.format('x - x.mean(0)')} -> {MEANS.format('x.mean(0) - x')}": (
            "the features stand twice in the hat matrix"
        ),
    },
}
