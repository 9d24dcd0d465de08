"""Mutants of chapter 09's official solutions that pass their checks, and why they are right too.

The key is "old line -> new line", as course.check.mutants writes it.
"""

EQUIVALENT = {
    "effective_keys": {},
    "mean_offset": {},
    "relevance": {},
    "integrated_gradients": {},
}
