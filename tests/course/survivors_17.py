"""Mutants of chapter 17's official solutions that pass their checks, and why they are right too.

The key is "old line -> new line", as course.check.mutants writes it.
"""

LENGTHS = "/ (x.norm() * y.norm())"
MEANS = "x, y, z = ({} for values in (x, y, z))"

EQUIVALENT = {
    "steps_needed": {
        "slowest = 1 - (values.min() / values.max()).item() ** 2 -> "
        "slowest = 1 - (values.min() / values.max()) ** 2": "math.log takes a tensor too",
    },
    "main_effects": {},
    "by_weights": {},
    "partial_correlation": {
        f"{a} -> {b}": "a dot product does not change when its sides are exchanged"
        for a, b in {
            "x = x - x @ z / (z @ z) * z": "x = x - z @ x / (z @ z) * z",
            "y = y - y @ z / (z @ z) * z": "y = y - z @ y / (z @ z) * z",
            f"return x @ y {LENGTHS}": f"return y @ x {LENGTHS}",
        }.items()
    }
    | {
        f"{MEANS.format('values - values.mean()')} -> {MEANS.format('values.mean() - values')}": (
            "with all three signs changed the result is the same"
        ),
    },
    "stitched": {
        "x, y = (x - x_mean, y - y_mean) -> x, y = (x - x_mean, y + y_mean)": (
            "a constant in y is orthogonal to every x of mean 0"
        ),
    },
}
