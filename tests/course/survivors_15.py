"""Mutants of chapter 15's official solutions that pass their checks, and why they are right too.

The key is "old line -> new line", as course.check.mutants writes it.
"""

EQUIVALENT = {
    "queries_from_scores": {},
    "undo_residual": {},
    "asymptotic_rate": {},
    "held_attention": {},
    "build_collision": {},
}
