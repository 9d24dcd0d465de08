"""Mutants of chapter 12's official solutions that pass their checks, and why they are right too.

The key is "old line -> new line", as course.check.mutants writes it.
"""

DISTANCE = "return ({}).norm(dim=1).sum()"
ALPHA = "alphas.append({})"
BETA = "q = q + (alphas.pop() - {}) * s"
VALUES = "_, values, rows = torch.linalg.svd({})"
SYMMETRIC = "a dot product is symmetric"

EQUIVALENT = {
    "distance_step": {
        f"{DISTANCE.format('function(x) - target')} -> {DISTANCE.format('target - function(x)')}": (
            "a distance has no direction"
        ),
    },
    "allowed_error": {},
    "left_after": {
        f"{VALUES.format('jacobian, full_matrices=False')} -> {VALUES.format(other)}": (
            "with m >= n there are n right singular vectors either way"
        )
        for other in ("jacobian", "jacobian, full_matrices=True")
    },
    "gauss_newton_step": {
        "return x + torch.linalg.lstsq(jacobian, left).solution[:, 0] -> "
        "return x + torch.linalg.lstsq(jacobian, left).solution[:, -1]": "there is one right side",
    },
    "lbfgs_direction": {
        f"{ALPHA.format('s @ q / (s @ y)')} -> {ALPHA.format('s @ q / (y @ s)')}": SYMMETRIC,
        f"{ALPHA.format('s @ q / (s @ y)')} -> {ALPHA.format('q @ s / (s @ y)')}": SYMMETRIC,
        "q = q * (s @ y) / (y @ y) -> q = q * (y @ s) / (y @ y)": SYMMETRIC,
        f"{BETA.format('y @ q / (s @ y)')} -> {BETA.format('q @ y / (s @ y)')}": SYMMETRIC,
        f"{BETA.format('y @ q / (s @ y)')} -> {BETA.format('y @ q / (y @ s)')}": SYMMETRIC,
    },
}
