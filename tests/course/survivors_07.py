"""Mutants of chapter 07's official solutions that pass their checks, and why they are right too.

The key is "old line -> new line", as course.check.mutants writes it.
"""

HALVINGS = "so many halvings are more than a double can show, one more or less"
BOUNDS = "low, high = (0.05, 20.0) -> low, high = (0.05, {})"
INSIDE = "the answer lies well inside"

EQUIVALENT = {
    "mixed_loss": {},
    "paired_interval": {},
    "best_temperature": {
        "for _ in range(60): -> for _ in range(59):": HALVINGS,
        "for _ in range(60): -> for _ in range(61):": HALVINGS,
        "if expected > true: -> if expected >= true:": "they are never exactly equal",
        BOUNDS.format(19.0): INSIDE,
        BOUNDS.format(21.0): INSIDE,
        "z = logits.double() -> z = logits": "a check's logits are double already",
    },
    "sharp_gradient": {
        "if length == 0: -> if length <= 0:": "a norm is never below 0",
    },
}
