"""Mutants of chapter 12's official solutions that pass their checks, and why they are right too.

The key is "old line -> new line", as course.check.mutants writes it.
"""

EQUIVALENT = {
    "distance_step": {},
    "allowed_error": {},
    "undo_residual": {},
    "gauss_newton_step": {},
    "lbfgs_direction": {},
}
