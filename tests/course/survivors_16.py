"""Mutants of chapter 16's official solutions that pass their checks, and why they are right too.

The key is "old line -> new line", as course.check.mutants writes it.
"""

SAME = "Python keeps one copy of such a text"
CHOICE = "x = branch if missing {} 'residual' else x + branch"

EQUIVALENT: dict[str, dict[str, str]] = {
    "steps_for": {},
    "block_without": {
        "if missing == 'norm': -> if missing is 'norm':": SAME,
        "if name != missing: -> if name is not missing:": SAME,
        f"{CHOICE.format('==')} -> {CHOICE.format('is')}": SAME,
        f"{CHOICE.format('==')} -> {CHOICE.format('>=')}": "'residual' is the last by alphabet",
    },
    "unused_numbers": {},
    "largest_value": {},
    "recovered_fast": {},
}
