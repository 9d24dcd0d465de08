"""Mutants of chapter 13's official solutions that pass their checks, and why they are right too.

The key is "old line -> new line", as course.check.mutants writes it.
"""

HELD = "held = variances.cumsum({}) / variances.sum()"
COUNT = "return int((held {} share).sum()) + 1"

EQUIVALENT = {
    "noise_gain": {},
    "components_needed": {
        f"{HELD.format(0)} -> {HELD.format(-1)}": "there is one axis",
        "centred = patches - patches.mean(0) -> centred = patches.mean(0) - patches": (
            "a variance has no sign"
        ),
        f"{COUNT.format('<')} -> {COUNT.format('<=')}": (
            "a sum of rounded numbers does not equal the share"
        ),
    },
    "forgotten_pattern": {},
    "estimate_from_noisy": {},
    "convolution_values": {},
}
